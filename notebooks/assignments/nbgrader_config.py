"""What nbgrader needs to know of these assignments: copy this file into the folder of your course.

Students write below the line that says so; the points lie in the cells that check their work.
"""

import os

# `get_config` is there when nbgrader reads this file. The one that can be imported is another.
c = get_config()  # noqa: F821

# Each course has a name of its own, and a grade book gradebook.db in its folder.
c.CourseDirectory.course_id = "binding"

# Seconds a cell may take. A cell that waits for ever, such as an endless loop, fails after them.
c.Execute.timeout = 300

# nbgrader gives no point for a check that writes to stderr. Progress bars and warnings do, and a right
# answer may well divide by zero on its way: the kernels, which inherit these, go without.
os.environ["TQDM_DISABLE"] = "1"
os.environ["PYTHONWARNINGS"] = "ignore"

c.ClearSolutions.code_stub = {
    "python": '# Your code here, in place of the next line.\nraise NotImplementedError("not done yet")'
}
c.ClearSolutions.text_stub = "*Your answer here, in place of this line.*"
