"""Programs that search, print and change text, and those that handle files: their options as data.

`program_record` says how the lists are written.
"""

from __future__ import annotations

from recollect.permissions.program_record import ProgramRecord, record

# They read and print; none has an option that runs or writes.
_READERS = (
    "b2sum base32 base64 basename bat batcat cal cat cksum cmp colordiff column comm cut"
    " df diff dirname du echo egrep exa expand expr eza factor false fgrep fmt fold free getconf"
    " getent grep groups head hexdump hostname id join jq locale logname ls lsblk lscpu lsof"
    " md5sum nl nproc numfmt od paste pgrep pidof pr printenv ps pwd readlink realpath rev seq"
    " sha1sum sha224sum sha256sum sha384sum sha512sum sleep stat strings sum tac tail tr true tsort"
    " tty type uname unexpand uptime w wc which whereis who whoami yes zcat zgrep"
)
# `bat` has a pager and `hostname` a name to set; they are among those with a list
_LISTED_AFTER_ALL = ("bat", "batcat", "hostname", "lsof", "zgrep", "colordiff", "cal", "getconf")
READERS = tuple(name for name in _READERS.split() if name not in _LISTED_AFTER_ALL)

_FILE_COMMANDS = "cp mkdir mv rm rmdir touch"  # what mode `edit` runs without a question
FILE_COMMANDS = frozenset(_FILE_COMMANDS.split())
_WRITERS = _FILE_COMMANDS + " bunzip2 bzip2 chgrp chmod chown gunzip gzip ln unlink unxz xz"

_RIPGREP = (
    "-niIlwcvFPSsHNuoULhqax0z -e,--regexp= -g,--glob= -t,--type= -T,--type-not= -A= -B= -C="
    " -m,--max-count= -M,--max-columns= -r,--replace= -j,--threads= -d,--max-depth= -E,--encoding="
    " -f,--file= --maxdepth= --files --files-with-matches --files-without-match --line-number"
    " --no-line-number --ignore-case --case-sensitive --smart-case --fixed-strings --word-regexp"
    " --line-regexp --count --count-matches --hidden --no-hidden --no-ignore --no-ignore-vcs"
    " --no-ignore-parent --no-ignore-global --no-ignore-dot --no-ignore-exclude --context="
    " --after-context= --before-context= --no-heading --heading --color= --colors= --sort= --sortr="
    " --json --stats --multiline --multiline-dotall --only-matching --invert-match --iglob="
    " --vimgrep --no-filename --with-filename --column --no-column --trim --follow --no-follow"
    " --type-list --pcre2 --pcre2-version --unrestricted --text --quiet --passthru --null"
    " --null-data --no-messages --no-config --max-filesize= --engine= --crlf --debug --trace"
    " --context-separator= --field-match-separator= --glob-case-insensitive --include-zero"
    " --max-columns-preview --no-unicode --one-file-system --path-separator= --byte-offset"
    " --version --help --auto-hybrid-regex --binary --block-buffered --line-buffered --mmap"
    " --type-add= --type-clear= --ignore-file-case-insensitive"
    " !--pre= !--pre-glob= !--hostname-bin= !--search-zip !--ignore-file="
)
_FD = (
    "-HIuisgFapL01qhlV -t,--type= -e,--extension= -d,--max-depth= -E,--exclude= -S,--size= -j="
    " -o,--owner= -c,--color= --min-depth= --exact-depth= --hidden --no-ignore --no-ignore-vcs"
    " --unrestricted --ignore-case --case-sensitive --glob --regex --fixed-strings --absolute-path"
    " --list-details --follow --full-path --print0 --changed-within= --changed-before= --prune"
    " --max-results= --quiet --show-errors --threads= --one-file-system --and= --strip-cwd-prefix"
    " --format= --relative-path !-x= !--exec= !-X= !--exec-batch= !--base-directory= !-C="
    " !--search-path= !--ignore-file= !--gen-completions=?"
)
_SORT = (
    "-bdfghiMnrRVsuzcCm -k,--key= -t,--field-separator= -S,--buffer-size= --numeric-sort --reverse"
    " --unique --ignore-case --ignore-leading-blanks --dictionary-order --general-numeric-sort"
    " --human-numeric-sort --version-sort --stable --check=? --month-sort --random-sort --merge"
    " --zero-terminated --parallel= --sort= --debug --batch-size= --version --help"
    " !-o= !--output= !-T= !--temporary-directory= !--compress-program= !--files0-from="
    " !--random-source="
)
_CURL = (
    "-sSfLIviGk46O# -m,--max-time= -X,--request= -H,--header= -A,--user-agent= -d,--data="
    " -w,--write-out= -b,--cookie= -u,--user= -F,--form= -e,--referer= -r,--range= -o,--output="
    " --data-raw= --data-binary= --data-urlencode= --json= --url= --silent --show-error --fail"
    " --fail-with-body --location --head --verbose --include --insecure --connect-timeout="
    " --compressed --retry= --retry-delay= --retry-max-time= --retry-connrefused --http1.1"
    " --http2 --no-progress-meter --progress-bar --get --max-redirs= --ipv4 --ipv6 --version -V"
    " --no-buffer -N --resolve= --retry-all-errors --globoff -g --remote-name"
    " !-K= !--config= !-T= !--upload-file= !--netrc-file= !-n !--netrc !-x= !--proxy="
    " !--unix-socket= !-c= !--cookie-jar= !-D= !--dump-header= !--trace= !--trace-ascii= !--cert="
    " !--key= !--engine= !--output-dir= !-J !--remote-header-name !--next !--stderr="
)
_TAR = (
    "-cxtvzjJkmpOrua -f,--file= -C,--directory= --exclude= --strip-components= --list --create"
    " --extract --get --verbose --gzip --bzip2 --xz --zstd --auto-compress --keep-old-files"
    " --no-same-owner --same-permissions --to-stdout --wildcards --exclude-vcs --exclude-from= -X="
    " --owner= --group= --numeric-owner --sort= --mtime= --totals --no-recursion --dereference -h"
    " --no-same-permissions --overwrite --one-file-system"
    " !-I= !--use-compress-program= !--to-command= !--checkpoint=? !--checkpoint-action= !-F="
    " !--info-script= !--new-volume-script= !--rsh-command= !--rmt-command= !--transform= !--xform="
    " !-P !--absolute-names !--index-file= !-T= !--files-from= !--unlink-first !-U !--force-local"
)
_SED = (
    "-nErsuz -e,--expression= -l= --quiet --silent --regexp-extended --unbuffered --null-data"
    " --separate --line-length= --posix --debug --version --help"
    " ~-i,--in-place=? !-f= !--file= !--follow-symlinks --sandbox"
)
_TREE = (
    "-adfihspuDFCnNASJXQgqxrtcUv -L= -I= -P= --dirsfirst --filesfirst --gitignore --prune"
    " --noreport --du --filelimit= --matchdirs --ignore-case --sort=? --charset= --si --inodes"
    " --device --timefmt= --version --help --info --metafirst"
    " !-o= !-R !-H= !-T= !--gitfile= !--infofile= !--fromfile !--fromtabfile !--output="
)
_XXD = "-bueiprEC -a -c= -g= -l= -s= -o= -d -n= -R= -cols= !-r"

TEXT_PROGRAMS: dict[str, ProgramRecord] = {
    **dict.fromkeys(READERS, record(nature="reads")),
    **dict.fromkeys(_WRITERS.split(), record(nature="writes")),
    "cp": record("-abiLlnPpsuvxdH -r,-R,--recursive -f,--force -T,--no-target-directory"
                 " -t,--target-directory= -S= --archive --parents --verbose --backup=?"
                 " --preserve=? --no-clobber --update=?", nature="writes"),
    "mkdir": record("-pvZ -m,--mode= --parents --verbose", nature="writes"),
    "mv": record("-binuv -f,--force -T,--no-target-directory -t,--target-directory= -S="
                 " --verbose --backup=? --no-clobber", nature="writes"),
    "rm": record("-idvI -r,-R,--recursive -f,--force --dir --verbose --interactive=?"
                 " --one-file-system --preserve-root=? --no-preserve-root", nature="writes"),
    "ag": record("-ilwvcsQGaznrH -A= -B= -C= -m= -g= --ignore= --hidden --nocolor --color --py"
                 " --js --ts --depth= --stats !--pager="),
    **dict.fromkeys(
        ("awk", "gawk", "mawk", "nawk", "original-awk"),
        record("-F= -v=", permutes=False, check="awk"),
    ),
    **dict.fromkeys(
        ("bat", "batcat"),
        record("-nppAfu -r,--line-range= -l,--language= --plain --number --color= --style="
               " --theme= --paging= --decorations= --wrap= --tabs= -H= --highlight-line="
               " !--pager= !--config-file= !--generate-config-file"),
    ),
    "bc": record("-lqsw --mathlib --quiet --standard --warn"),
    "curl": record(_CURL, check="curl"),
    "date": record("-uR -d,--date= -I,--iso-8601=? -r,--reference= --utc --universal --rfc-2822"
                   " --rfc-3339= --rfc-email --version --help --debug --resolution !-s= !--set="
                   " !-f= !--file=", operand="date format"),
    **dict.fromkeys(("fd", "fdfind"), record(_FD, check="globs")),
    "file": record("-biLkhnNrszpd0E -F= -e= --brief --mime --mime-type --mime-encoding"
                   " --dereference --keep-going --no-pad --print0 !-f= !--files-from= !-m="
                   " !--magic-file= !-C !--compile !-Z !-S"),
    **dict.fromkeys(("find", "gfind"), record(check="find", single_dash=True)),
    "hostname": record("-fsidIAy --fqdn --short --all-ip-addresses", most=0),
    "printf": record("", permutes=False, check="printf"),
    "rg": record(_RIPGREP, check="globs"),
    "sed": record(_SED, check="sed"),
    "shuf": record("-erz -n= -i= --echo --head-count= --input-range= --repeat --zero-terminated"
                   " !-o= !--output= !--random-source="),
    "sort": record(_SORT),
    "sqlite3": record("-batch -bail -box -column -csv -echo -header -html -json -line -list"
                      " -markdown -noheader -nullvalue= -quote -readonly -separator= -table -tabs"
                      " -version !-init= !-cmd= !-interactive !-A !-append",
                      single_dash=True, check="sqlite", concern="code"),
    "tar": record(_TAR, check="tar"),
    **dict.fromkeys(("test", "["), record(check="test", ends_options=False)),
    "tree": record(_TREE, ends_options=False),
    "uniq": record("-cduizD -f,--skip-fields= -s,--skip-chars= -w,--check-chars= --count --repeated"
                   " --unique --ignore-case --all-repeated=? --group=? --zero-terminated", most=1),
    "xxd": record(_XXD, most=1, single_dash=True),
    "yq": record("-PCMNre -o,--output-format= -p,--input-format= -I,--indent= --raw-output --null"
                 " --prettyPrint --no-colors --unwrapScalar=? ~-i ~--inplace"),
    "zip": record("-rqj9u -x= -i=", concern="code"),
    "cloc": record("--by-file --quiet --json --csv --md --yaml --git --vcs --exclude-dir="
                   " --exclude-lang= --include-lang= --exclude-ext= --include-ext= --fullpath"
                   " --match-f= --not-match-f= --match-d= --not-match-d= --skip-uniqueness"
                   " --progress-rate= --version --help"),
    "unzip": record("-lZzptv -qonjaC -d= -x=", concern="code"),
}  # fmt: skip
