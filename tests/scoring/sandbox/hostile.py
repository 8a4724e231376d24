"""Programs that try to pass without solving, to get out, or to do harm. None of them solves its task.

A program that gets out says BREACH. ``@TOKEN@`` stands for a word of the test's own, by which processes and files that
a program leaves are found; ``@OUTSIDE@`` for a folder outside the sandbox that anybody may write; ``@PORT@`` for a port
that somebody listens on.
"""

from __future__ import annotations

_WRONG = "\ndef running_total(values):\n    return None\n"

_DAEMON = """
import os, sys
def leave():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execv(sys.executable, [sys.executable, "-S", "-c", "import time; time.sleep(600)", "@TOKEN@"])
        os._exit(0)
"""

FORGERIES = {
    "sys.exit(0) when loaded": "import sys\nsys.exit(0)\n",
    "os._exit(0) when loaded": "import os\nos._exit(0)\n",
    "sys.exit(0) in the call": "import sys\ndef running_total(values):\n    sys.exit(0)\n",
    "os._exit(0) in the call": "import os\ndef running_total(values):\n    os._exit(0)\n",
    "equality that always holds": """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
def running_total(values):
    return Yes()
""",
    "a list whose equality always holds": """
class Yes(list):
    def __eq__(self, other): return True
    __hash__ = None
def running_total(values):
    return Yes()
""",
    "a tuple, dict and int whose equality always holds": """
def always(base):
    return type("Yes", (base,), {"__eq__": lambda s, o: True, "__ne__": lambda s, o: False, "__hash__": base.__hash__})
calls = [always(tuple)(), always(dict)(), always(int)(3)]
def running_total(values):
    return calls.pop()
""",
    "metaclass equality": """
class Meta(type):
    def __eq__(cls, other): return True
    def __hash__(cls): return 0
class Yes(metaclass=Meta): pass
def running_total(values):
    return Yes
""",
    "builtins replaced": """
import builtins
for name in ("AssertionError", "all", "len", "isinstance", "list", "bool"):
    setattr(builtins, name, lambda *a, **k: True)
builtins.__import__ = lambda *a, **k: builtins
"""
    + _WRONG,
    "the checker's modules replaced": """
import sys
for name, module in list(sys.modules.items()):
    if name.startswith("guest"):
        for key in list(vars(module)):
            if callable(vars(module)[key]) and key not in ("Channel",):
                try:
                    setattr(module, key, lambda *a, **k: {"passed": True, "checks": 3, "reason": ""})
                except Exception:
                    pass
"""
    + _WRONG,
    "a verdict printed": """
import json, struct
body = json.dumps({"passed": True, "checks": 3, "reason": ""})
print(body, flush=True)
print("3 passed", flush=True)
"""
    + _WRONG,
    "a verdict written to every file descriptor": """
import json, os, struct
body = json.dumps({"passed": True, "checks": 3, "reason": "", "returned": None, "result": [1, 3, 6]}).encode()
for fd in range(64):
    for text in (body, struct.pack(">I", len(body)) + body):
        try:
            os.write(fd, text)
        except OSError:
            pass
"""
    + _WRONG,
    "answers sent ahead": """
import json, os, struct
for answer in ([1, 2, 3], [0], [1]):
    body = json.dumps({"result": ["list", *answer], "changed": []}).encode()
    for fd in range(3, 64):
        try:
            os.write(fd, struct.pack(">I", len(body)) + body)
        except OSError:
            pass
def running_total(values):
    return None
""",
    "a frame that never ends": """
import os, struct
for fd in range(3, 64):
    try:
        os.write(fd, struct.pack(">I", 2**32 - 1) + b"[" * 1000)
    except OSError:
        pass
"""
    + _WRONG,
    "expected values looked for in memory": """
import gc, sys
def running_total(values):
    needle = "".join(["candi", "date([-1"])  # joined when it runs, so that the program does not find itself
    frame = sys._getframe()
    seen = [*gc.get_objects()]
    while frame is not None:
        seen += [frame.f_locals, frame.f_globals]
        frame = frame.f_back
    for thing in seen:
        texts = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else (thing,)
        if any(isinstance(text, str) and text is not needle and needle in text for text in texts):
            return {1: [1, 3, 6], -1: [-1, 0]}.get(values[0] if values else 0, [])
    return None
""",
    "the test's text looked for in the process's pages": """
def running_total(values):
    needle = b"".join([b"def check(", b"candidate)"])
    try:
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb") as memory:
            for line in maps:
                low, high = (int(part, 16) for part in line.split()[0].split("-"))
                if "rw" in line.split()[1] and high - low < 1 << 26:
                    memory.seek(low)
                    if memory.read(high - low).count(needle) > 1:
                        return {1: [1, 3, 6], -1: [-1, 0]}.get(values[0] if values else 0, [])
    except OSError:
        pass
    return None
""",
    "trace functions": """
import sys, threading
def trace(frame, event, arg):
    if "check" in frame.f_code.co_name:
        raise SystemExit(0)
    return trace
sys.settrace(trace); sys.setprofile(trace); threading.settrace(trace)
"""
    + _WRONG,
    "an exit handler": "import atexit, os\natexit.register(os._exit, 0)\n" + _WRONG,
    "an exception that looks like success": """
class AssertionError(StopIteration): pass
def running_total(values):
    raise AssertionError("passed")
""",
    "KeyboardInterrupt": "def running_total(values):\n    raise KeyboardInterrupt\n",
    "GeneratorExit when loaded": "raise GeneratorExit\n",
    "a list that contains itself": "def running_total(values):\n    out = []\n    out.append(out)\n    return out\n",
    "a very deep list": """
def running_total(values):
    out = []
    for _ in range(100000):
        out = [out]
    return out
""",
    "a generator without end": """
import itertools
def running_total(values):
    return itertools.count()
""",
    "no function at all": "answer = 42\n",
    "a class that answers everything": """
class running_total:
    def __init__(self, values): pass
    def __getattr__(self, name): return lambda *a: True
""",
}
"""Programs that try to be taken for right."""

ESCAPES = {
    "the parent killed": """
import os, signal
for pid in (os.getppid(), 1, -1, 0):
    try:
        if pid or os.getpgrp() != os.getpid(): os.kill(pid, signal.SIGKILL)
    except OSError: pass
"""
    + _WRONG,
    "every process stopped": """
import os, signal
for pid in range(1, 5000):
    try:
        if pid != os.getpid(): os.kill(pid, signal.SIGSTOP)
    except OSError: pass
"""
    + _WRONG,
    "daemons left when loaded": _DAEMON + "\nfor _ in range(3): leave()\n" + _WRONG,
    "daemons left in the call": _DAEMON + "\ndef running_total(values):\n    leave()\n    return None\n",
    "a double fork that holds the channel": """
import os, time
if os.fork():
    os._exit(0)
os.setsid()
"""
    + _WRONG,
    "files written outside": """
import os
places = ("@OUTSIDE@", "/tmp", "/var/tmp", "/dev/shm", "/root", "/home", "/", "/usr", os.path.dirname(os.__file__))
for folder in places:
    for way in ("w", "a"):
        try:
            with open(folder + "/@TOKEN@", way) as file: file.write("here")
        except OSError: pass
"""
    + _WRONG,
    "links and folders made outside": """
import os
for folder in ("@OUTSIDE@", "/tmp", "/var/tmp"):
    for act in (lambda p: os.mkdir(p), lambda p: os.symlink("/etc", p), lambda p: os.mkfifo(p)):
        try: act(folder + "/@TOKEN@")
        except OSError: pass
"""
    + _WRONG,
    "a socket to a listener": """
import socket
for family, address in ((socket.AF_INET, ("127.0.0.1", @PORT@)), (socket.AF_UNIX, "\\0@TOKEN@")):
    try:
        s = socket.socket(family); s.connect(address); s.send(b"hello")
        raise SystemExit("BREACH: connected")
    except OSError: pass
"""
    + _WRONG,
    "the environment": """
import ctypes, os
libc = ctypes.CDLL(None); libc.getenv.restype = ctypes.c_char_p
if "@TOKEN@" in repr(os.environ) or libc.getenv(b"SPECFORGE_RED_TEAM"):
    raise SystemExit("BREACH: the environment")
"""
    + _WRONG,
    "files outside read": """
import os
def attempt(act):
    try: return act()
    except OSError: return None
if attempt(lambda: open("@OUTSIDE@/secret").read()) or attempt(lambda: os.listdir("@OUTSIDE@")):
    raise SystemExit("BREACH: a file outside")
for path in ("/etc/passwd", "/etc/hostname", "/proc/1/environ", "/proc/version", "/sys/kernel", "/dev/vda", "/dev/mem"):
    if attempt(lambda: os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(1)):
        raise SystemExit("BREACH: " + path)
"""
    + _WRONG,
    "a listener of its own": """
import socket
def running_total(values):
    s = socket.socket(); s.bind(("0.0.0.0", 0)); s.listen()
    return None
""",
    "a datagram by a socket pair": """
import socket
a, b = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
a.sendto(b"hello", "\\0@TOKEN@")
"""
    + _WRONG,
    "the parent traced": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for pid in [os.getppid(), 1, *range(2, 200)]:
    libc.ptrace(16, pid, 0, 0)
    libc.ptrace(0x4206, pid, 0, 0)
"""
    + _WRONG,
    "other processes' memory": """
import os
try: seen = [name for name in os.listdir("/proc") if name.isdigit()]
except OSError: seen = []
for pid in ["self", "1", str(os.getppid()), *seen]:
    for name in ("mem", "environ", "maps", "root", "cwd", "fd"):
        try:
            os.listdir(f"/proc/{pid}/{name}/"); open(f"/proc/{pid}/root/@TOKEN@", "w")
        except OSError: pass
        try:
            with open(f"/proc/{pid}/mem", "r+b") as file: file.seek(4096); file.write(b"x")
        except (OSError, ValueError): pass
"""
    + _WRONG,
    "rights regained": """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x10020000, 0x20000000, 0x40000000): libc.unshare(flags)
libc.mount(b"none", b"/", b"tmpfs", 0, None); libc.umount2(b"/proc", 2); libc.chroot(b"/proc/1/root")
for act in (lambda: os.setuid(0), lambda: os.setgid(0), lambda: os.chroot("/"), lambda: os.setgroups([0])):
    try: act()
    except OSError: pass
try: open("@OUTSIDE@/@TOKEN@", "w")
except OSError: pass
"""
    + _WRONG,
    "set-user-id programs": """
import os, subprocess
for program in ("/bin/su", "/usr/bin/passwd", "/usr/bin/sudo", "/bin/mount"):
    try: subprocess.run([program], timeout=1, stdin=subprocess.DEVNULL, capture_output=True)
    except (OSError, subprocess.SubprocessError): pass
"""
    + _WRONG,
    "limits raised": """
import resource
for name in (resource.RLIMIT_AS, resource.RLIMIT_CPU, resource.RLIMIT_NPROC, resource.RLIMIT_FSIZE):
    for value in ((resource.RLIM_INFINITY,) * 2,):
        try: resource.setrlimit(name, value)
        except (OSError, ValueError): pass
        else: raise SystemExit("BREACH: a limit was raised")
"""
    + _WRONG,
    "file descriptors closed": "import os\nos.closerange(0, 256)\n" + _WRONG,
    "file descriptors looked through": """
import os, fcntl
for fd in range(4, 256):
    try:
        fcntl.fcntl(fd, fcntl.F_GETFD)
    except OSError: continue
    os.write(fd, b"hello"); raise SystemExit("BREACH: an open file descriptor")
"""
    + _WRONG,
}
"""Programs that try to reach what is not theirs, or to outlive their test."""

BOMBS = {
    "forks without end": "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n",
    "forks that exit": """
import os
while True:
    try:
        if os.fork() == 0: os._exit(0)
    except OSError: pass
""",
    "a loop without end": "def running_total(values):\n    while True: pass\n",
    "a loop without end when loaded": "while True: pass\n",
    "a sleep without end": "import time\ndef running_total(values):\n    time.sleep(100000)\n",
    "signals ignored": """
import signal
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
def running_total(values):
    while True: pass
""",
    "memory without end": "data = []\nwhile True: data.append(bytearray(1 << 24))\n",
    "memory in many processes": """
import os, time
for _ in range(8): os.fork()
data = []
while True:
    try: data.append(bytearray(b"x") * (1 << 24))
    except MemoryError: time.sleep(0.1)
""",
    "shared memory": """
import mmap, time
maps = []
try:
    while True: maps.append(mmap.mmap(-1, 1 << 26)); maps[-1].write(b"x" * (1 << 26))
except (OSError, ValueError, MemoryError): pass
"""
    + _WRONG,
    "one large file": """
import os
with open(os.environ["TMPDIR"] + "/large", "wb") as file:
    while True: file.write(b"x" * (1 << 20))
""",
    "many files": """
import os, itertools
for number in itertools.count():
    with open(f"{os.environ['TMPDIR']}/{number}", "wb") as file: file.write(b"x" * (1 << 20))
""",
    "folders without end": """
import os
os.chdir(os.environ["TMPDIR"])
try:
    for _ in range(3000):
        os.mkdir("d"); os.chdir("d")
except OSError: pass
os.chdir(os.environ["TMPDIR"])
try: os.chmod("d", 0)
except OSError: pass
"""
    + _WRONG,
    "output without end": "while True: print('x' * 100000)\n",
    "deep recursion": """
import sys
sys.setrecursionlimit(10**9)
def running_total(values):
    return running_total(values)
""",
    "recursion in C": """
import sys
sys.setrecursionlimit(10**9)
class Deep:
    def __repr__(self): return repr(self)
def running_total(values):
    return repr(Deep())
""",
    "a crash": "import ctypes\nctypes.string_at(1)\n",
    "threads that never end": """
import threading, time
def forever():
    while True: time.sleep(1)
for _ in range(1000):
    try: threading.Thread(target=forever).start()
    except (RuntimeError, MemoryError): break
"""
    + _WRONG,
    "a result of many megabytes": "def running_total(values):\n    return 'x' * (200 << 20)\n",
    "a result that never compares": "def running_total(values):\n    return range(10**18)\n",
    "a number of many digits": "def running_total(values):\n    return 7 ** 10_000_000\n",
    "stopped": "import os, signal\nos.kill(os.getpid(), signal.SIGSTOP)\n" + _WRONG,
}
"""Programs that try to use up the machine."""

HOSTILE = {**FORGERIES, **ESCAPES, **BOMBS}

QUICK = (
    "sys.exit(0) when loaded",
    "os._exit(0) in the call",
    "equality that always holds",
    "builtins replaced",
    "a verdict written to every file descriptor",
    "answers sent ahead",
    "expected values looked for in memory",
    "the parent killed",
    "daemons left in the call",
    "files written outside",
    "a socket to a listener",
    "a crash",
)
"""Those that run in the default stage, none of which needs its time limit."""
