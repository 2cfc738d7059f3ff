/* The widgets' scripts hand their labels to MathJax 2; this book holds MathJax 3. */
MathJax.Hub = {
  Queue: ([, , element]) =>
    MathJax.startup.promise.then(() => MathJax.typesetPromise([element])),
};
