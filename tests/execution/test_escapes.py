"""Ways out of a sandbox, each fired for real; where it can be, first without the sandbox."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from recollect.execution import supervisor
from recollect.execution.sandbox import Isolation
from tests.execution.workbench import BARE, Bench, isolation_of, on_bench, said, words


@pytest.fixture(params=["bubblewrap", "landlock"])
def isolation(request: pytest.FixtureRequest) -> Isolation:
    return isolation_of(request.param)


ATTRIBUTES = """
chmod 777 {0}/file; chmod 777 {0}; (exec 3<{0}/file; chmod 777 /proc/self/fd/3 /dev/fd/3)
ln -s {0}/file link; chmod 777 link; touch -h -d 2001-01-01 {0}/file; touch -d 2001-01-01 {0}/file
touch -d 2001-01-01 link; cd {0} && chmod 777 file; touch -d 2001-01-01 file; cd -
setfattr -n user.evil -v x {0}/file; chattr +d {0}/file
python3 - <<'END'
import os
for act in (
    lambda: os.fchmod(os.open("{0}/file", os.O_RDONLY), 0o777),
    lambda: os.chmod("file", 0o777, dir_fd=os.open("{0}", os.O_RDONLY)),
    lambda: os.utime(os.open("{0}/file", os.O_RDONLY), (1, 1)),
    lambda: os.setxattr("{0}/file", "user.evil", b"x"),
    lambda: os.chmod("/proc/self/root{0}/file", 0o777),
):
    try:
        act()
    except OSError:
        pass
END
"""


def test_modes_and_times_of_files_outside_cannot_be_changed(
    tmp_path: Path, elsewhere: Path, isolation: Isolation
) -> None:
    file = elsewhere / "file"
    file.write_text("x")
    file.chmod(0o600)
    elsewhere.chmod(0o700)
    before = (file.stat(), elsewhere.stat())
    command = ATTRIBUTES.format(elsewhere)
    said(tmp_path / "boxed", isolation, command)
    for old, path in zip(before, (file, elsewhere), strict=True):
        new = path.stat()
        assert (new.st_mode, new.st_mtime_ns) == (old.st_mode, old.st_mtime_ns)
    assert os.listxattr(file) == []
    said(tmp_path / "bare", BARE, command)
    assert file.stat().st_mode & 0o777 == 0o777
    assert file.stat().st_mtime < 1_000_000_000


def test_modes_and_times_in_the_workspace_can_be_changed(
    tmp_path: Path, isolation: Isolation
) -> None:
    shown = said(
        tmp_path,
        isolation,
        "touch a && chmod 640 a && touch -d 2001-01-01 a && cp -p a b && stat -c '%a %Y' a b && "
        "chmod u+x sub && (cd sub && touch c && chmod 600 ../sub/c && exec 3<c && "
        "chmod 755 /proc/self/fd/3 && stat -c %a c) && ln -s a l && touch -h -d 2002-01-01 l && "
        'chown $(id -u) a && python3 -c \'import os; os.utime("a"); os.chmod("a", 0o604)\' && '
        "stat -c %a a",
    )
    lines = shown.splitlines()
    assert lines[0] == lines[1]
    assert lines[0].startswith("640 978")
    assert lines[2:4] == ["755", "604"]


MAKE_OWNERS_PROGRAMS = """
import ctypes, os
call = ctypes.CDLL(None).syscall
acts = {
    "chmod": lambda: os.chmod("a", 0o4755),
    "fchmod": lambda: os.fchmod(os.open("a", os.O_RDONLY), 0o4755),
    "fchmodat": lambda: os.chmod("a", 0o6755, dir_fd=os.open(".", os.O_RDONLY)),
    "open": lambda: os.open("b", os.O_CREAT | os.O_WRONLY, 0o4755),
    "tmpfile": lambda: os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755),
    "mknod": lambda: os.mknod("c", 0o104755),
    "openat2": lambda: call(437, -100, b"d", (ctypes.c_uint64 * 3)(0o101, 0o4755, 0), 24) > 0,
    "fchmodat2": lambda: call(452, -100, b"a", 0o4755, 0) == 0,
}
for name, act in acts.items():
    try:
        print(name, act() is not False)
    except PermissionError:
        print(name, False)
os.chmod("a", 0o755)
print("plain", oct(os.stat("a").st_mode & 0o7777), os.open("e", os.O_CREAT, 0o755) > 0)
"""


def test_no_program_that_runs_with_its_owners_rights_is_left_behind(
    tmp_path: Path, isolation: Isolation
) -> None:
    for kind, made in (("boxed", isolation), ("bare", BARE)):
        work = tmp_path / kind / "work"
        work.mkdir(parents=True)
        (work / "a").touch()
        (work / "make.py").write_text(MAKE_OWNERS_PROGRAMS)
        shown = said(tmp_path / kind, made, "python3 make.py; install -m 4755 /bin/true f")
        assert "plain 0o755 True" in shown
        assert ("True" in shown.replace("plain 0o755 True", "")) == (kind == "bare")
        modes = [one.stat().st_mode for one in work.iterdir()]
        assert any(mode & 0o6000 for mode in modes) == (kind == "bare"), shown


def test_a_terminal_of_the_user_cannot_be_read_or_typed_into(
    tmp_path: Path, isolation: Isolation
) -> None:
    master, slave = pty.openpty()
    name = os.ttyname(slave)
    os.write(master, b"typed-password\n")
    inject = "import fcntl,sys;[fcntl.ioctl(open('{}','rb+',0),0x5412,c) for c in (b'x',b'\\n')]"
    boxed = said(
        tmp_path,
        isolation,
        f'head -n1 {name}; head -n1 </dev/tty; python3 -c "{inject.format(name)}"; '
        f"ls /dev/pts /dev/input; echo wrote > {name}; ls -la /proc/self/fd",
    )
    assert "typed-password" not in boxed
    assert os.read(slave, 100) == b"typed-password\n"
    assert "socket:" not in boxed  # no descriptor of ours
    os.close(slave)
    os.close(master)


SETTINGS = """
import os
done = tried = 0
for top in ("/proc/sys", "/proc/irq", "/proc/fs", "/proc/acpi", "/sys/kernel", "/sys/module"):
    for folder, _, names in os.walk(top):
        for name in names:
            tried += 1
            try:
                os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK))
                done += 1
            except OSError:
                pass
print("opened", done if tried > 100 else "too few")
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may set what the kernel does")
def test_not_even_root_sets_what_the_kernel_does(tmp_path: Path, isolation: Isolation) -> None:
    """What stands in kernel/core_pattern is run by the kernel when a program crashes."""
    line = f"python3 - <<'END'\n{SETTINGS}\nEND"
    assert said(tmp_path / "boxed", isolation, line).startswith("opened 0\n")
    bare = said(tmp_path / "bare", BARE, line)
    assert bare.startswith("opened ")
    assert not bare.startswith(("opened 0\n", "opened too few"))


CALLS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
calls = {
    "mount": (165, b"x", b"/", b"tmpfs", 0, 0), "unshare user": (272, 0x10000000),
    "unshare mount": (272, 0x20000), "keyctl": (250, 0, -3, 0), "bpf": (321, 0, 0, 0),
    "perf": (298, 0, 0, -1, -1, 0), "userfaultfd": (323, 0), "open by handle": (304, 3, 0, 0),
    "io_uring": (425, 1, 0), "setns": (308, 0, 0), "fsopen": (430, b"tmpfs", 0),
    "kexec": (246, 0, 0, 0, 0), "packet": (41, 17, 3, 0), "vsock": (41, 40, 1, 0),
    "alg": (41, 38, 5, 0), "clone user": (56, 0x10000011, 0, 0, 0, 0), "syslog": (103, 3, 0, 0),
}
for name, (number, *rest) in calls.items():
    done = libc.syscall(number, *rest)
    if done == 0 and name.startswith("clone") and not ctypes.get_errno():
        os._exit(0)
    if done >= 0:
        print("POSSIBLE", name)
print("tried", len(calls))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers of calls are x86-64's")
def test_calls_that_containers_refuse_are_refused(tmp_path: Path, isolation: Isolation) -> None:
    shown = said(tmp_path, isolation, f"python3 - <<'END'\n{CALLS}\nEND")
    assert "tried 17" in shown
    assert "POSSIBLE" not in shown


def test_our_own_processes_cannot_be_read_traced_or_stopped(
    tmp_path: Path, isolation: Isolation
) -> None:
    with subprocess.Popen(["sleep", "3600"], env={"KEY": "planted-secret"}) as other:
        pids = f"{os.getpid()} {other.pid} $PPID"
        command = (
            f"for p in {pids}; do cat /proc/$p/environ /proc/$p/root/etc/shadow /proc/$p/mem; "
            "ls /proc/$p/fd /proc/$p/cwd; kill -STOP $p; prlimit --pid $p --nofile=1; done; "
            "echo alive"
        )
        boxed = said(tmp_path, isolation, command)
        other.kill()
    assert "planted-secret" not in boxed
    assert "root:" not in boxed
    # in a namespace of its own, the supervisor's number is another process
    assert "alive" in boxed


def test_semaphores_and_shared_memory_work_and_are_private(
    tmp_path: Path, isolation: Isolation
) -> None:
    script = (
        "import multiprocessing as m, multiprocessing.shared_memory as s, os\n"
        "if __name__ == '__main__':\n"
        "    with m.Pool(2) as pool: print(sum(pool.map(abs, range(-9, 0))))\n"
        "    a = s.SharedMemory(create=True, size=8, name='recollect_test'); a.buf[0] = 7\n"
        "    b = s.SharedMemory('recollect_test'); print(b.buf[0]); b.close()\n"
        "    a.close(); a.unlink()\n"
    )
    other = Path("/dev/shm") / f"recollect-test-{os.getpid()}"
    other.write_text("of another program")
    try:
        boxed = said(
            tmp_path, isolation, f"python3 - <<'END'\n{script}\nEND\ncat {other}; echo x > {other}"
        )
        assert boxed.startswith("45\n7\n")
        assert "of another program" not in boxed
        assert other.read_text() == "of another program"
    finally:
        other.unlink()


# A character whose last byte, in the legacy encoding, takes the backslash after it as its own.
LEGACY = {"GBK": ("zh_CN", "見"), "BIG5": ("zh_TW", "日"), "SHIFT_JIS": ("ja_JP", "見")}


@pytest.mark.parametrize("charset", LEGACY)
def test_a_legacy_locale_does_not_change_how_a_line_is_read(
    tmp_path: Path, charset: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, character = LEGACY[charset]
    name = f"{source}.{charset}"
    if shutil.which("localedef") is None:
        pytest.skip("localedef is missing; `apt-get install locales`")
    line = ["localedef", "-c", "-i", source, "-f", charset, str(tmp_path / name)]
    subprocess.run(line, capture_output=True, check=False)
    if not (tmp_path / name).exists():
        pytest.skip(f"the locale {name} cannot be made; `apt-get install locales`")
    # one quoted text for us; for a shell in that locale, three commands
    attack = f'echo "{character}\\"; touch fired; echo {character}\\""'
    environment = {**os.environ, "LOCPATH": str(tmp_path), "LC_ALL": name}
    subprocess.run(["bash", "-c", attack], env=environment, cwd=tmp_path, capture_output=True)
    assert (tmp_path / "fired").exists()
    for variable, value in environment.items():
        monkeypatch.setenv(variable, value)
    for kind in ("bubblewrap", "landlock", "none"):
        with suppress(pytest.skip.Exception):
            shown = said(tmp_path / kind, isolation_of(kind), f"{attack}; locale")
            assert "touch fired" in shown
            assert "LC_ALL=C.UTF-8" in shown
            assert not (tmp_path / kind / "work" / "fired").exists()


def test_the_descriptors_of_our_process_are_closed(tmp_path: Path, isolation: Isolation) -> None:
    secret = tmp_path / "secret"
    secret.write_text("planted-secret")
    with secret.open() as file:
        os.set_inheritable(file.fileno(), True)
        shown = said(tmp_path, isolation, "ls -l /proc/self/fd; cat /proc/self/fd/[3-9] </dev/null")
    assert "planted-secret" not in shown


def test_many_commands_at_once_do_not_disturb_each_other(
    tmp_path: Path, isolation: Isolation
) -> None:
    async def steps(bench: Bench) -> None:
        begun = [await bench.run(f"sleep 0.2; echo job {n}", background=True) for n in range(3)]
        assert all(not item.is_error for item in begun)
        assert words(await bench.run("echo front")).startswith("front")
        for number in range(3):
            await bench.read_until(f"job-{number + 1}", f"job {number}")

    on_bench(tmp_path, isolation, steps)


def test_a_command_cannot_change_the_program_that_starts_the_next_one(
    tmp_path: Path, isolation: Isolation
) -> None:
    """As if recollect were installed in the project's own environment."""
    work = tmp_path / "work"
    source, packages = Path(supervisor.__file__).parents[1], Path(pytest.__file__).parents[1]
    shutil.copytree(source, work / "recollect", ignore=shutil.ignore_patterns("__pycache__"))
    (work / "python").symlink_to(sys.executable)
    script = f"""
import asyncio, pathlib, sys
from recollect.execution.command_runner import CommandRunner
from recollect.store.output_notes import OutputLog
async def note(_): return ""
async def main():
    runner = CommandRunner(sandbox={isolation.kind!r})
    for line in sys.argv[1:]:
        log = OutputLog(note, "call", recallable=False)
        where = (pathlib.Path({str(work)!r}),)
        result = await runner.run(line, where, "", 0, lambda _: None, log, background=False)
        print(result.text)
    await runner.close()
asyncio.run(main())
"""
    plant = f'echo \'open("{tmp_path}/fired", "w")\' >> recollect/execution/{{}}.py'
    names = ("supervisor", "protected_files", "landlock", "new_repositories")
    lines = [plant.format(name) for name in names]
    swap = f"rm -f python; printf '#!/bin/sh\\ntouch {tmp_path}/fired\\n' > python; chmod +x python"
    ran = subprocess.run(
        [str(work / "python"), "-c", script, "; ".join(lines), swap, "true"],
        env={**os.environ, "PYTHONPATH": f"{work}:{packages}", "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
    )
    assert ran.stdout.count("[exit code") == 3, ran.stderr
    assert not (tmp_path / "fired").exists()
