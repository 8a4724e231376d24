"""The system calls that a confined process is refused, as a seccomp filter."""

from __future__ import annotations

import errno
import os
import struct

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_KILL = 0x80000000

_LOAD = 0x20  # load a 32-bit word of struct seccomp_data
_EQUAL = 0x15
_AT_LEAST = 0x35
_ANY_BIT = 0x45
_AND = 0x54
_RETURN = 0x06

_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
"""Offsets in struct seccomp_data: the low words of the first and second argument on little-endian machines."""

_NEW_NAMESPACES = 0x7E020000
_SOCK_STREAM = 1
_SOCK_TYPE_MASK = 0xF
_CLONE3 = 435

_COMMON = {
    "pidfd_send_signal": 424,
    "io_uring_setup": 425,
    "io_uring_enter": 426,
    "io_uring_register": 427,
    "open_tree": 428,
    "move_mount": 429,
    "fsopen": 430,
    "fsconfig": 431,
    "fsmount": 432,
    "fspick": 433,
    "pidfd_open": 434,
    "pidfd_getfd": 438,
    "mount_setattr": 442,
}
_REFUSED = {
    "x86_64": {
        **_COMMON,
        "socket": 41,
        "connect": 42,
        "bind": 49,
        "listen": 50,
        "ptrace": 101,
        "process_vm_readv": 310,
        "process_vm_writev": 311,
        "unshare": 272,
        "setns": 308,
        "mount": 165,
        "umount2": 166,
        "pivot_root": 155,
        "chroot": 161,
        "add_key": 248,
        "request_key": 249,
        "keyctl": 250,
        "bpf": 321,
        "perf_event_open": 298,
        "userfaultfd": 323,
        "shmget": 29,
        "shmat": 30,
        "msgget": 68,
        "semget": 64,
        "mq_open": 240,
        "memfd_create": 319,
        "name_to_handle_at": 303,
        "open_by_handle_at": 304,
        "init_module": 175,
        "finit_module": 313,
        "kexec_load": 246,
    },
    "aarch64": {
        **_COMMON,
        "socket": 198,
        "connect": 203,
        "bind": 200,
        "listen": 201,
        "ptrace": 117,
        "process_vm_readv": 270,
        "process_vm_writev": 271,
        "unshare": 97,
        "setns": 268,
        "mount": 40,
        "umount2": 39,
        "pivot_root": 41,
        "chroot": 51,
        "add_key": 217,
        "request_key": 218,
        "keyctl": 219,
        "bpf": 280,
        "perf_event_open": 241,
        "userfaultfd": 282,
        "shmget": 194,
        "shmat": 196,
        "msgget": 186,
        "semget": 190,
        "mq_open": 180,
        "memfd_create": 279,
        "name_to_handle_at": 264,
        "open_by_handle_at": 265,
        "init_module": 105,
        "finit_module": 273,
        "kexec_load": 104,
    },
}
_SIGNALS = {
    "x86_64": {"kill": 62, "tgkill": 234, "tkill": 200, "rt_sigqueueinfo": 129, "rt_tgsigqueueinfo": 297},
    "aarch64": {"kill": 129, "tgkill": 131, "tkill": 130, "rt_sigqueueinfo": 138, "rt_tgsigqueueinfo": 240},
}
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_CLONE = {"x86_64": 56, "aarch64": 220}
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
_PRLIMIT = {"x86_64": 302, "aarch64": 261}


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)


def _refuse(number: int, error: int = errno.EPERM) -> bytes:
    return _op(_EQUAL, number, 0, 1) + _op(_RETURN, _ERRNO | error)


def filter_program(machine: str | None = None, own_pid: int | None = None) -> bytes:
    """An array of ``struct sock_filter``.

    Args:
        machine: the processor, as ``os.uname`` names it; this machine's by default.
        own_pid: where given, signals may go to this process and its process group only.

    Raises:
        OSError: the system calls of this processor are not known here.
    """
    machine = machine or os.uname().machine
    if machine not in _ARCHITECTURES:
        raise OSError(errno.ENOSYS, f"no system call filter for {machine}")
    permit = _op(_RETURN, _ALLOW)
    refuse = _op(_RETURN, _ERRNO | errno.EPERM)
    parts = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _op(_RETURN, _KILL),
        _op(_LOAD, _NUMBER),
        # numbers from here on are the x32 calls, another way to each call refused below
        _op(_AT_LEAST, 0x40000000, 0, 1),
        refuse,
        # its flags lie in memory that a filter can't read; the C library falls back to clone
        _refuse(_CLONE3, errno.ENOSYS),
    ]
    parts += [_refuse(number) for number in sorted(set(_REFUSED[machine].values()))]
    # each block: another call jumps over it (its length follows in instructions)
    parts.append(_op(_EQUAL, _CLONE[machine], 0, 4))
    parts += [_op(_LOAD, _FIRST), _op(_ANY_BIT, _NEW_NAMESPACES, 0, 1), refuse, permit]
    # a datagram socket of a pair can still send to any address
    parts.append(_op(_EQUAL, _SOCKETPAIR[machine], 0, 5))
    parts += [_op(_LOAD, _SECOND), _op(_AND, _SOCK_TYPE_MASK), _op(_EQUAL, _SOCK_STREAM, 0, 1), permit, refuse]
    # limits of other processes
    parts.append(_op(_EQUAL, _PRLIMIT[machine], 0, 4))
    parts += [_op(_LOAD, _FIRST), _op(_EQUAL, 0, 0, 1), permit, refuse]
    if own_pid is not None:
        signals = _SIGNALS[machine]
        for name in ("tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
            parts.append(_refuse(signals[name]))
        parts.append(_op(_EQUAL, signals["tgkill"], 0, 4))
        parts += [_op(_LOAD, _FIRST), _op(_EQUAL, own_pid, 0, 1), permit, refuse]
        parts.append(_op(_EQUAL, signals["kill"], 0, 5))
        parts += [_op(_LOAD, _FIRST), _op(_EQUAL, own_pid, 1, 0), _op(_EQUAL, 0, 0, 1), permit, refuse]
    parts.append(permit)
    return b"".join(parts)
