"""Programs that build, test, install and run a project's code, interpreters, and programs that are
never harmless: their options as data. `program_record` says how the lists are written.
"""

from __future__ import annotations

from recollect.permissions.parsed_line import word_set
from recollect.permissions.program_record import ProgramRecord, record

_NPM_OPTIONS = (
    "-s,--silent -q,--quiet -d --verbose -w,--workspace= -ws,--workspaces --if-present --no-audit"
    " --no-fund --prefer-offline --offline --frozen-lockfile --legacy-peer-deps --loglevel="
    " --no-color --color=? --include-workspace-root --depth= --json --long --parseable -l"
    " --no-progress --progress=? --omit= --include= --production --ignore-scripts -r,--recursive"
    " -F,--filter= --version -v --help -h --watch=? --no-update-notifier --stream --parallel"
    " --immutable --non-interactive --reporter= --exact -E --workspace-root --no-save --all"
    " --force -f --registry= -y --yes --if-exists --dry-run --package-lock-only"
    " ~-D ~--save-dev ~-P ~--save-prod ~-O ~--save ~-S ~--save-exact ~--save-optional"
    " ~-g ~--global ~--prefix= ~-C= ~--dir= ~--cwd= ~--cache= !--script-shell= !--shell="
    " !--node-options= !--userconfig= !--globalconfig= !--editor= !--viewer= !--browser= !--git="
    " !--sign-git-tag !--sign-git-commit"
)
_NPM_HARMLESS = (
    "run test start stop restart ls outdated view why audit ci build lint version ping root bin"
    " prefix fund query explain dedupe prune rebuild pack help search doctor whoami exec"
)
_NPM_ALIASES = (
    "run-script=run rum=run urn=run t=test tst=test list=ls la=ls ll=ls info=view show=view v=view"
    " install-test=install it=install cit=ci install-ci-test=ci clean-install-test=ci i=install"
    " in=install ins=install inst=install insta=install instal=install isnt=install"
    " isnta=install isntal=install isntall=install add=install un=uninstall"
    " unlink=uninstall rm=uninstall r=uninstall remove=uninstall up=update upgrade=update"
    " udpate=update clean-install=ci ic=ci install-clean=ci isntall-clean=ci x=exec c=config"
    " ln=link rb=rebuild ddp=dedupe find=search s=search se=search"
)
_SCRIPT = record(_NPM_OPTIONS, operand="script word", nature="builds", passes_on=True)
_INSTALL = record(concern="code", nature="builds")
_NPM_COMMANDS: dict[str, ProgramRecord] = {
    **dict.fromkeys(_NPM_HARMLESS.split(), _SCRIPT),
    "install": record(
        _NPM_OPTIONS, nature="builds", most=0
    ),  # by the lock file; a named package is `code`
    **dict.fromkeys(word_set("uninstall update link init create dedupe"), _INSTALL),
    **dict.fromkeys(word_set("dlx import fetch patch store cache get pkg"), _INSTALL),
    # `list` prints what `.npmrc` holds, and pnpm and yarn do not hide tokens
    "config": record(_NPM_OPTIONS, first="get", most=2, operand="setting name"),
    "npm": record(concern="outward", nature="builds"),  # yarn's: `yarn npm publish`
    "set": record(nature="refused", concern="refused"),
    **dict.fromkeys(
        word_set(
            "publish unpublish deprecate owner access team token login logout adduser dist-tag star"
            " unstar hook org profile"
        ),
        record(concern="outward", nature="builds"),
    ),
}


def _build_npm(*, abbreviates: bool) -> ProgramRecord:
    return record(
        _NPM_OPTIONS,
        nature="builds",
        commands=_NPM_COMMANDS,
        aliases=_NPM_ALIASES,
        passes_on=True,
        first=", " + " ".join(_NPM_COMMANDS),
        abbreviates=abbreviates,
    )


_PYTEST = (
    "-vqxslh -k= -m= -n,--numprocesses= -r= --lf --ff --last-failed --failed-first --tb="
    " --maxfail= --durations= --durations-min= --co --sw --collect-only --cov=? --no-cov"
    " --cov-report= --cov-fail-under= --no-header --no-summary --verbose --quiet --exitfirst"
    " --stepwise --strict-markers --strict-config --capture= --color= --disable-warnings --dist="
    " --timeout= --markers --fixtures --showlocals --runxfail --nf --new-first --import-mode="
    " --deselect= --ignore= --ignore-glob= --cache-clear --full-trace --setup-show --version --help"
    " --forked --reruns= --benchmark-skip --benchmark-only --snapshot-update --asyncio-mode="
    " --log-level= --log-cli-level= --show-capture= --no-showlocals --trace-config --pyargs"
    " --last-failed-no-failures= --hypothesis-profile= --hypothesis-seed="
    " --hypothesis-show-statistics"
    " ~-p= ~-c= ~-o= ~--rootdir= ~--confcutdir= ~--junitxml= ~--basetemp= ~--pdb ~--pdbcls="
    " ~--debug"
)
_CARGO = (
    "-qv -p,--package= -j,--jobs= -F,--features= --release --all --workspace --all-targets"
    " --all-features --lib --bin= --bins --tests --test= --example= --examples --bench= --benches"
    " --no-run --quiet --verbose --locked --offline --frozen --no-default-features --check"
    " --no-deps --exclude= --message-format= --color= --target= --profile= --no-fail-fast --doc"
    " --open --edition= --all-features --fix --allow-dirty --allow-staged --depth= -e -i,--invert="
    " --format-version= --keep-going --timings ~--config= ~--manifest-path= ~--target-dir= ~-Z="
)
_CARGO_COMMANDS = {
    **dict.fromkeys(
        word_set("build test check clippy fmt run tree doc bench metadata version nextest"),
        record(_CARGO, nature="builds", passes_on=True),
    ),
    **dict.fromkeys(
        word_set(
            "add remove update install uninstall fetch clean new init vendor fix expand search"
        ),
        _INSTALL,
    ),
    **dict.fromkeys(word_set("publish yank login logout owner"), record(concern="outward")),
}
_GO_OPTIONS = (
    "-bench= -benchmem -benchtime= -count= -cover -coverprofile= -covermode= -coverpkg= -failfast"
    " -json -list= -p= -parallel= -race -run= -short -timeout= -v -x -n -a -tags= -trimpath -mod="
    " -cpu= -shuffle= -skip= -fullpath -m -u -f= -e -deps -test -all -l -w -d -s"
    " ~-o= ~-exec= ~-toolexec= ~-vettool= ~-ldflags= ~-gcflags= ~-overlay= ~-modfile= ~-C="
)
_GO_COMMANDS = {
    **dict.fromkeys(
        word_set("build doc fmt list test version vet help"),
        record(_GO_OPTIONS, nature="builds", single_dash=True),
    ),
    **dict.fromkeys(word_set("run get install mod generate clean work tool"), _INSTALL),
    "env": record("-json -changed !-w !-u", single_dash=True),  # `-w` is for all later runs
}
_PIP = {
    **dict.fromkeys(
        ("list", "show", "freeze", "check", "index", "inspect"),
        record("-vqof --format= --outdated --verbose --user --files --local --exclude-editable"
               " --exclude= --not-required --path= --disable-pip-version-check", nature="builds"),
    ),
    **dict.fromkeys(word_set("install uninstall download wheel cache hash debug"), _INSTALL),
    "config": record("--user --site --global", first=", list get debug"),
}  # fmt: skip
_UV = {
    **dict.fromkeys(
        word_set(
            "sync lock add remove venv build init tree export python self tool cache version format"
            " help"
        ),
        _INSTALL,
    ),
    "pip": record(commands=_PIP, nature="builds", concern="code"),
    "publish": record(concern="outward"),
}

BUILD_PROGRAMS: dict[str, ProgramRecord] = {
    "npm": _build_npm(abbreviates=True),
    **dict.fromkeys(("pnpm", "yarn"), _build_npm(abbreviates=False)),
    "black": record("-qvC -l,--line-length= -t,--target-version= --check --diff --quiet --verbose"
                    " --color --fast --exclude= --extend-exclude= --include= --workers= -W="
                    " --skip-string-normalization -S ~-c= ~--code= ~--config=",
                    nature="builds", operand="inside"),
    "cargo": record("-qv --quiet --verbose --locked --offline --frozen --version -V --color= --list"
                    " ~--config= ~-Z= ~-C=", nature="builds", commands=_CARGO_COMMANDS,
                    aliases="b=build t=test c=check r=run d=doc rm=remove", permutes=False),
    "go": record("", nature="builds", commands=_GO_COMMANDS, permutes=False, single_dash=True),
    "make": record("-ksnBqiwtSrR -j,--jobs=? -l=? -O=? --keep-going --silent --quiet --dry-run"
                   " --just-print --always-make --no-print-directory --print-directory"
                   " --output-sync=? --ignore-errors --no-builtin-rules --version --help --touch"
                   " --question --trace --load-average=? -d --debug=?"
                   " ~-f= ~--file= ~--makefile= ~-C= ~--directory= ~-I= ~--include-dir= ~--eval="
                   " ~-E= ~-e ~--environment-overrides ~-o= ~-W=",
                   nature="builds", operand="inside"),
    "mypy": record("-qv -p,--package= -m,--module= --strict --ignore-missing-imports --pretty"
                   " --show-error-codes --no-incremental --explicit-package-bases --no-color-output"
                   " --show-error-context --namespace-packages --no-error-summary"
                   " --check-untyped-defs"
                   " --python-version= --platform= --exclude= --follow-imports="
                   " --warn-unused-ignores"
                   " --disallow-untyped-defs ~--install-types --non-interactive"
                   " --hide-error-context"
                   " --no-pretty --disable-error-code= --enable-error-code= --show-column-numbers"
                   " --no-strict-optional --soft-error-limit= --output= --strict-equality --verbose"
                   " ~-c= ~--command= ~--config-file= ~--python-executable= ~--custom-typeshed-dir="
                   " ~--cache-dir=", nature="builds", operand="inside"),
    "pip": record("-qv --quiet --verbose --no-color --disable-pip-version-check --no-input"
                  " --version"
                  " -V --no-cache-dir", nature="builds", commands=_PIP),
    "pytest": record(_PYTEST, nature="builds", operand="inside"),
    "ruff": record("-qvensh --fix --unsafe-fixes --diff --select= --ignore= --check --no-cache"
                   " --show-fixes --output-format= --quiet --verbose --statistics --preview"
                   " --extend-select= --extend-ignore= --line-length= --target-version= --exclude="
                   " --exit-zero --no-fix --fix-only --show-files --show-settings --watch --all"
                   " --extend-exclude= --force-exclude --respect-gitignore --exit-non-zero-on-fix"
                   " --per-file-ignores= --unfixable= --fixable= --add-noqa --isolated --version"
                   " ~--config= ~--output-file= ~-o= ~--cache-dir= ~--stdin-filename=",
                   nature="builds", operand="inside",
                   first="check format rule version linter config clean analyze help , ."),
    "tsc": record("-b -p,--project= --noEmit --pretty --strict --skipLibCheck --build --version -v"
                  " --incremental --force --verbose --watch -w --listFiles --showConfig --init"
                  " --target= --module= --moduleResolution= --jsx= --lib= --declaration -t= -m="
                  " --esModuleInterop --allowJs --checkJs --emitDeclarationOnly ~--outDir="
                  " ~--outFile=",
                  nature="builds", operand="inside", single_dash=True),
    "unittest": record("-vqfbc -k= -s,--start-directory= -p,--pattern= -t= --verbose --quiet"
                       " --failfast --buffer --catch --locals --durations=",
                       nature="builds", operand="inside"),
    "uv": record("-qv --quiet --verbose --offline --no-progress --color= --no-cache -n --version -V"
                 " ~--directory= ~--project= ~--config-file= ~--no-config ~--python= ~-p="
                 " ~--cache-dir=",
                 nature="builds", commands=_UV, permutes=False),
    "twine": record(commands={"check": record("--strict", nature="builds"),
                              "upload": record(concern="outward")}, nature="builds"),
    "wget": record("-qcSNnv -O,--output-document= -P= -T,--timeout= -t,--tries= --quiet --spider"
                   " --no-check-certificate --no-verbose --header= --content-on-error"
                   " --show-progress", concern="code"),
    # interpreters: `script_checks` reads what follows the options
    "python": record("-uBOsEIvqbSPd -W= -X= ~-i --version -V --help -h ~-c=. -m=.",
                     permutes=False, nature="builds", check="interpreter"),
    "pypy": record("-uBOsEIvq -W= -X= ~-i --version ~-c=. -m=.",
                   permutes=False, nature="builds", check="interpreter"),
    "node": record("--test --check -c --watch --version -v --enable-source-maps --no-warnings"
                   " --trace-warnings --trace-uncaught --experimental-strip-types --expose-gc"
                   " --max-old-space-size= --stack-trace-limit= --test-name-pattern= --test-only"
                   " --test-reporter= --test-concurrency= --unhandled-rejections="
                   " --trace-deprecation"
                   " --input-type= --experimental-vm-modules"
                   " ~-e= ~--eval= ~-p= ~--print= ~-r= ~--require= ~--import= ~--loader= ~-i"
                   " ~--experimental-loader= ~--env-file= ~--inspect=?",
                   permutes=False, nature="builds", check="interpreter"),
    **dict.fromkeys(
        ("bash", "sh", "dash", "zsh", "ksh"),
        record("-ceuxvnlfhabmprtBCEHPTi -o= -O= --norc --noprofile --login --posix --version"
               " !--rcfile= !--init-file= !-s",
               permutes=False, nature="builds", check="interpreter"),
    ),
    "perl": record("-wctTWX ~-e= ~-E= ~-n ~-p ~-l ~-a ~-0 ~-i=? ~-M= ~-I= ~-F= --version -v",
                   permutes=False, nature="builds", check="interpreter"),
    "ruby": record("-wcW ~-e= ~-n ~-p ~-l ~-a ~-i=? ~-r= ~-I= --version -v", permutes=False,
                   nature="builds", check="interpreter"),
    "php": record("-lv -d= --version ~-r= ~-f= ~-S= ~-t=",
                  permutes=False, nature="builds", check="interpreter"),
}  # fmt: skip

# They run what they are given, as everybody knows; with a sandbox mode `free` lets them.
_HONEST = (
    "ant ar bun bundle c++ cc clang clang++ composer conda cpp deno dotnet erl g++ gcc"
    " gradle groovy hatch iex install jar java javac ld ldd lua luajit m4 mvn nodemon patch pdm"
    " pipenv pipx poetry R rake Rscript rye scala split sponge swift tclsh tee truncate ts-node tsx"
    " vagrant"
    " concurrently source . mktemp dd"
)
# They reach other machines, other users or the system, or are disguises by their nature.
_REFUSED = (
    "caller dirs eval exec trap"
    " 7z aa-exec alias ansible ansible-playbook apk apt apt-get aptitude at atq atrm batch bind"
    " brew builtin busybox bwrap capsh chattr chroot chrt choom chsh chfn compgen complete compopt"
    " coproc corepack cpio cpulimit crontab csh daemonize dbus-run-session dbus-send dc debugfs"
    " diff3 disown dnf dpkg doas docker docker-compose dmsetup ed emacs emacsclient enable entr ex"
    " expect fakeroot fc fdisk fish firejail flatpak flock fsck ftp function gdb getopts git-shell"
    " gnuplot gpg gpg2 gpasswd groupadd guile halt hash helm history hwclock i386 ifconfig info"
    " init insmod iptables ip6tables ip irb jjs journalctl jshell keyctl kexec kubectl ldconfig"
    " less let lftp links linux32 linux64 lldb loginctl logrotate logsave losetup lp ltrace"
    " lynx machinectl mail mailx man mc mkfs mknod mksh modprobe more mosh most mount mutt mysql"
    " nano nc"
    " ncat netcat newgrp nft nmap nsenter nsupdate numactl nvim octave openssl osascript pacman"
    " pager parallel parted passwd perf pico pidstat pivot_root pkexec podman popd poweroff"
    " powershell prename prlimit proot proxychains psql pushd pwsh racket rbash reboot red rename"
    " rlwrap rmmod rsync rtorrent run-mailcap run-parts runuser rview rvim sash sbcl scp screen"
    " script scriptlive scriptreplay sdiff sendmail service setarch setcap setfacl setpriv"
    " setuidgid sfdisk sftp sg shred shutdown snap socat softlimit ssh ssh-add ssh-agent"
    " ssh-copy-id ssh-keygen sshpass start-stop-daemon strace su sudo sudoedit suspend swapoff"
    " swapon sysctl systemctl systemd-run taskset tcpdump tcsh telnet timedatectl tmux torify"
    " toybox trap-cmd umount unalias unbuffer unshare update-alternatives useradd userdel usermod"
    " valgrind vi view vigr vim vimdiff vipw visudo w3m wall watch watchexec wish write xdg-open"
    " xdotool xterm xvfb-run yash yum zypper terraform pulumi aws gcloud az gh glab heroku fly"
    " vercel netlify wrangler firebase skopeo buildah nerdctl minikube kind eksctl ghci"
)
OTHER_PROGRAMS: dict[str, ProgramRecord] = {
    "csplit": record(
        "-ksqz -f,--prefix= -b,--suffix-format= -n,--digits= --suppress-matched"
        " --keep-files --quiet --silent --elide-empty-files",
        concern="code",
    ),
    **dict.fromkeys(_HONEST.split(), record(nature="code")),
    **dict.fromkeys(_REFUSED.split(), record(nature="refused")),
}
