"""Running programs that a model wrote, without trusting them.

Who is trusted: this process, the guest's supervisor, spawner and judge, and the kernel. Who is not: the program,
which may do whatever Python, ctypes and the system calls left to it can do, and which knows this code. A data set's
tests are trusted to decide about programs, not with the machine: the judge that runs them is confined like a program.

**The verdict.** The judge and the program are two processes. The test, the expected values and the verdict live in
the judge; the program gets the names of its functions and their arguments, and answers with plain values of exact
built-in types that the judge builds itself (``guest.wire``). So an equality that always holds, a patched builtin, an
exit, a printed or forged verdict, or a search of the program's own memory gain nothing: the spawner that programs are
forked from has never held a test, nor another program. What the judge takes from the program beyond plain values
(generators, instances) can be called, iterated and indexed, but not compared with plain values. What stays open is
what Python leaves open in any test: a function may change its mutable arguments, and classes that the test itself
takes from the program compare as the program says.

**The machine.** Each program runs with no network, no environment but a fixed one, a read-only view of the
interpreter and the system's libraries, a scratch folder of its own, and limits on time, memory, processes, files and
output. As :class:`Isolation` defines it, this is *full* behind namespaces (bubblewrap's, the guest's own, or a
container's), *partial* where the kernel refuses the same by seccomp and Landlock alone, and *none* where a probe,
which really tries to get out, found a way; *none* is refused unless the user insists. Where namespaces can be nested
each program has its own process and mount namespaces, which end everything it started; else orphans become the
spawner's children and are ended by it. No defence is made against faults of the kernel, nor against timing what other
programs do.

Nothing here needs root, bubblewrap or user namespaces; each is used where it is there.
"""

from specforge.scoring.sandbox.settings import Isolation, SandboxSettings

__all__ = ["Isolation", "SandboxSettings"]
