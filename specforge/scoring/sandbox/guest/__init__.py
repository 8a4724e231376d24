"""What runs inside the sandbox. Standard library only, relative imports only: the folder is mounted there by itself.

Four processes, none of which trusts the ones below it:

    supervisor   reads jobs from the host, enforces the limits, reports verdicts        (``supervisor``)
    ├── judge    one a job: holds the tests, runs them, decides                          (``judge``)
    └── spawner  started before the first job, so that it has never seen a test          (``spawner``)
        └── program   one a program: holds the model's code and nothing else             (``program``)

The judge and the program are connected by a socket pair alone. Over it go names of functions, their arguments and plain
values (``wire``); the test's text, the expected values and the verdict never reach the program.
"""
