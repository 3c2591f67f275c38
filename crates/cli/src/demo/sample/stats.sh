#!/bin/sh
# Statistics over numbers, one a line on standard input.

mean() {
    awk '{ sum += $1 } END { print sum / NR }'
}

median() {
    sort | awk '{ a[NR] = $1 } END {
        if (NR % 2) print a[(NR + 1) / 2]
        else print (a[NR / 2] + a[NR / 2 + 1]) / 2
    }'
}
