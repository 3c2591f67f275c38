#!/bin/sh
# Makes the archive of a release from a binary that runs on this machine, and its line of SHA256SUMS.
#
#   packaging/archive.sh BINARY VERSION TARGET DIR
#
# DIR gets codespar-VERSION-TARGET.tar.gz and the same with .sha256. GZIP_LEVEL is 9 by default.

set -eu

[ $# -eq 4 ] || {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
binary=$1 version=$2 target=$3 out=$4
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
name=codespar-$version-$target

told=$("$binary" --version)
if [ "$told" != "codespar $version" ]; then
    printf 'archive.sh: the binary is "%s", not "codespar %s"\n' "$told" "$version" >&2
    exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/completions" "$out"
cp "$binary" "$work/$name/codespar"
chmod 755 "$work/$name/codespar"
cp "$root/README.md" "$root/CHANGELOG.md" "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$work/$name/"
"$binary" man "$work/$name/man" >/dev/null
"$binary" completions bash >"$work/$name/completions/codespar.bash"
"$binary" completions zsh >"$work/$name/completions/_codespar"
"$binary" completions fish >"$work/$name/completions/codespar.fish"

archive=$name.tar.gz
(cd "$work" && tar -cf - "$name") | gzip "-${GZIP_LEVEL:-9}" -n >"$out/$archive"
cd "$out"
if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$archive" >"$archive.sha256"
else
    shasum -a 256 "$archive" >"$archive.sha256"
fi
printf '%s\n' "$archive"
