#!/bin/sh
# Installs codespar for the current user, from the archives of a release. No root is needed.
#
#   curl -fsSL https://raw.githubusercontent.com/codespar/codespar/main/install.sh | sh
#   sh install.sh --version 0.1.0 --prefix /opt/codespar
#
# Options, or variables of the environment:
#   --version V    CODESPAR_VERSION    a version such as 0.1.0; the latest by default
#   --prefix DIR   PREFIX              installs to DIR/bin; $HOME/.local by default
#                  CODESPAR_RELEASES   another place that has the files of the releases
#
# The archive is checked against SHA256SUMS of the same release before anything of it is unpacked;
# one that differs is refused, and nothing is installed.

set -eu

releases=${CODESPAR_RELEASES:-https://github.com/codespar/codespar/releases}
version=${CODESPAR_VERSION:-latest}
prefix=${PREFIX:-}

fail() {
    printf 'install.sh: %s\n' "$1" >&2
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
        --version | --prefix)
            [ $# -ge 2 ] || fail "$1 needs a value"
            [ "$1" = --version ] && version=$2
            [ "$1" = --prefix ] && prefix=$2
            shift 2
            ;;
        -h | --help)
            sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *) fail "unknown option $1 (--version V, --prefix DIR)" ;;
    esac
done

if [ -z "$prefix" ]; then
    [ -n "${HOME:-}" ] || fail "HOME is not set; give --prefix DIR"
    prefix=$HOME/.local
fi
version=${version#v}
case $version in
    latest) ;;
    '' | *[!0-9A-Za-z.+-]*) fail "\`$version\` is not a version; it looks like 0.1.0" ;;
esac
case $releases in
    https://* | http://localhost[:/]* | http://127.0.0.1[:/]*) ;;
    *) fail "CODESPAR_RELEASES must begin with https://" ;;
esac

# The name that archives have for this machine.
target() {
    system=$(uname -s) machine=$(uname -m)
    case $system in
        Linux) end=unknown-linux-musl ;;
        Darwin) end=apple-darwin ;;
        *) fail "there is no archive for $system; build it with: cargo install --git https://github.com/codespar/codespar codespar" ;;
    esac
    case $machine in
        x86_64 | amd64) begin=x86_64 ;;
        aarch64 | arm64) begin=aarch64 ;;
        *) fail "there is no archive for $system on $machine; build it with: cargo install --git https://github.com/codespar/codespar codespar" ;;
    esac
    printf '%s-%s' "$begin" "$end"
}

# fetch URL FILE
fetch() {
    if command -v curl >/dev/null 2>&1; then
        curl --fail --silent --show-error --location --retry 2 --output "$2" "$1"
    elif command -v wget >/dev/null 2>&1; then
        wget -q -O "$2" "$1"
    else
        fail "neither curl nor wget is installed"
    fi || fail "cannot fetch $1"
}

sum() {
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif command -v openssl >/dev/null 2>&1; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail "none of sha256sum, shasum and openssl is installed, so the archive cannot be checked"
    fi
}

target=$(target)
work=$(mktemp -d) || fail "cannot make a temporary directory"
new=
clean() {
    rm -rf "$work"
    [ -z "$new" ] || rm -f "$new"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

if [ "$version" = latest ]; then
    from=$releases/latest/download
else
    from=$releases/download/v$version
fi
fetch "$from/SHA256SUMS" "$work/sums"
# One line for each archive: the sum, two spaces, the name.
line=$(grep -E "^[0-9a-f]{64}  codespar-[0-9A-Za-z.+-]+-$target\.tar\.gz\$" "$work/sums" | head -n 1)
[ -n "$line" ] || fail "this release has no archive for $target"
expected=${line%% *}
archive=${line##* }
name=${archive%.tar.gz}
fetch "$from/$archive" "$work/$archive"
found=$(sum "$work/$archive")
if [ "$found" != "$expected" ]; then
    fail "$archive is not what the release says: its sum is $found, expected $expected. Nothing was installed"
fi

tar -xzf "$work/$archive" -C "$work" || fail "$archive cannot be unpacked"
[ -f "$work/$name/codespar" ] || fail "$archive has no codespar in it"
chmod 755 "$work/$name/codespar"
"$work/$name/codespar" --version >/dev/null ||
    fail "the codespar of $archive does not run on this machine"

mkdir -p "$prefix/bin" || fail "cannot write to $prefix; give another --prefix DIR"
# Beside its place and moved there, so that a running codespar is not in the way and no half of one
# is ever found.
new=$prefix/bin/.codespar.$$
cp "$work/$name/codespar" "$new" || fail "cannot write to $prefix/bin; give another --prefix DIR"
mv -f "$new" "$prefix/bin/codespar"
new=

# put FROM TO: what makes it comfortable; a directory that cannot be written is no failure.
put() {
    { mkdir -p "$(dirname "$2")" && cp "$1" "$2"; } 2>/dev/null ||
        printf 'install.sh: %s was not written\n' "$2" >&2
}
for page in "$work/$name"/man/*.1; do
    [ ! -f "$page" ] || put "$page" "$prefix/share/man/man1/${page##*/}"
done
if [ -d "$work/$name/completions" ]; then
    put "$work/$name/completions/codespar.bash" "$prefix/share/bash-completion/completions/codespar"
    put "$work/$name/completions/_codespar" "$prefix/share/zsh/site-functions/_codespar"
    put "$work/$name/completions/codespar.fish" "$prefix/share/fish/vendor_completions.d/codespar.fish"
fi

printf 'installed %s\n' "$("$prefix/bin/codespar" --version)"
printf '       in %s\n' "$prefix/bin/codespar"
# shellcheck disable=SC2016 # it is for the user's shell
case ":${PATH:-}:" in
    *":$prefix/bin:"*) ;;
    *) printf 'add it to your PATH: export PATH="%s/bin:$PATH"\n' "$prefix" ;;
esac
