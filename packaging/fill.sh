#!/bin/sh
# Fills the Homebrew formula and the npm package with the version and the sums of a release.
#
#   packaging/fill.sh VERSION SHA256SUMS DIR
#
# DIR gets codespar.rb and npm/. A sum that is missing is an error: a package without it could not
# check what it fetches.

set -eu

[ $# -eq 3 ] || {
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2
    exit 2
}
version=$1 sums=$2 out=$3
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
url=https://github.com/codespar/codespar/releases/download/v$version
case $version in
    '' | *[!0-9A-Za-z.+-]*)
        printf 'fill.sh: "%s" is not a version\n' "$version" >&2
        exit 2
        ;;
esac

mkdir -p "$out"
rm -rf "$out/npm"
cp -R "$root/npm" "$out/npm"
cp "$root/packaging/homebrew/codespar.rb.in" "$out/codespar.rb.new"
edits="s|@VERSION@|$version|g;s|@URL@|$url|g"
json=
for target in aarch64-apple-darwin x86_64-apple-darwin \
    aarch64-unknown-linux-musl x86_64-unknown-linux-musl; do
    name=codespar-$version-$target.tar.gz
    sum=$(awk -v name="$name" '$2 == name && $1 ~ /^[0-9a-f]+$/ && length($1) == 64 { print $1 }' "$sums")
    if [ -z "$sum" ]; then
        rm -f "$out/codespar.rb.new"
        printf 'fill.sh: %s has no sum for %s\n' "$sums" "$name" >&2
        exit 1
    fi
    edits="$edits;s|@SUM-$target@|$sum|g"
    json="$json${json:+,}
  \"$target\": \"$sum\""
done
sed "$edits" "$out/codespar.rb.new" >"$out/codespar.rb"
rm -f "$out/codespar.rb.new"
printf '{%s\n}\n' "$json" >"$out/npm/sums.json"
sed "s|\"version\": \"[^\"]*\"|\"version\": \"$version\"|" "$root/npm/package.json" >"$out/npm/package.json"
