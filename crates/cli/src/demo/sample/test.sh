#!/bin/sh
# Run with: sh test.sh
. ./stats.sh

passed=0
failed=0
check() {
    if [ "$2" = "$3" ]; then
        echo "ok      $1"
        passed=$((passed + 1))
    else
        echo "FAILED  $1: expected $3, got $2"
        failed=$((failed + 1))
    fi
}

check "mean of three" "$(printf '1\n2\n6\n' | mean)" 3
check "median of small numbers" "$(printf '3\n1\n2\n' | median)" 2
check "median of two-digit numbers" "$(printf '9\n10\n100\n' | median)" 10
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
