#!/bin/sh
# Runs what was decided on, with one comment of progress that becomes the result.
#
# Outputs: branch, pr, pr-url, cost, structured-output. The exit code is that of codespar.

set -eu

api=${GITHUB_API_URL:-https://api.github.com}
dir=${RUNNER_TEMP:-/tmp}/codespar-action
run_url=${GITHUB_SERVER_URL:-https://github.com}/$GITHUB_REPOSITORY/actions/runs/${GITHUB_RUN_ID:-0}
number=${ACTION_NUMBER:-}
comment=
mkdir -p "$dir"

# send METHOD PATH BODY-FILE: prints the answer.
send() {
    printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN" |
        curl --config - --fail --silent --show-error --max-time 60 --request "$1" \
            --header 'Accept: application/vnd.github+json' --header 'Content-Type: application/json' \
            --data "@$3" "$api/$2"
}

# say FILE: the comment, made when there is something to say first. A comment that cannot be written
# is no reason to stop the work.
say() {
    [ -n "$number" ] || return 0
    {
        printf '<!-- codespar-action %s -->\n' "${GITHUB_RUN_ID:-0}"
        cat "$1"
        printf '\n[log of the run](%s)\n' "$run_url"
    } | jq -Rs '{body: .[0:60000]}' >"$dir/comment.json"
    if [ -z "$comment" ]; then
        comment=$(send POST "repos/$GITHUB_REPOSITORY/issues/$number/comments" "$dir/comment.json" | jq -r .id) ||
            comment=
    else
        send PATCH "repos/$GITHUB_REPOSITORY/issues/comments/$comment" "$dir/comment.json" >/dev/null ||
            printf 'the comment of progress could not be changed\n' >&2
    fi
}

set -- "$ACTION_COMMAND"
case $ACTION_COMMAND in
    dev)
        set -- dev --json --repo "$GITHUB_REPOSITORY" --max-budget-usd "${INPUT_MAX_BUDGET_USD:-5}"
        [ -z "${ACTION_PULL:-}" ] || set -- "$@" --pr "$ACTION_PULL"
        ;;
    review)
        set -- review --json --repo "$GITHUB_REPOSITORY" --max-budget-usd "${INPUT_MAX_BUDGET_USD:-5}" "$ACTION_PULL"
        ;;
    prompt)
        # Nobody is there to be asked, and nothing is changed.
        set -- -p --output-format json --permission-mode plan --max-budget-usd "${INPUT_MAX_BUDGET_USD:-5}"
        [ -z "${INPUT_JSON_SCHEMA:-}" ] || set -- "$@" --json-schema "$INPUT_JSON_SCHEMA"
        ;;
    *)
        printf '::error::unknown command %s\n' "$ACTION_COMMAND"
        exit 1
        ;;
esac
[ -z "${INPUT_MODEL:-}" ] || set -- "$@" --model "$INPUT_MODEL"
# One argument a line; the last may have no line break.
while IFS= read -r line || [ -n "$line" ]; do
    [ -z "$line" ] || set -- "$@" "$line"
done <<END
${INPUT_ARGS:-}
END
# An instruction that begins with a dash is no option.
[ "$ACTION_COMMAND" != dev ] || set -- "$@" -- "$(cat "$ACTION_TEXT")"

printf '⏳ **CodeSpar** is working on it.\n' >"$dir/says.md"
say "$dir/says.md"

# Empty keys are worse than none: they would be sent.
[ -n "${ANTHROPIC_API_KEY:-}" ] || unset ANTHROPIC_API_KEY
[ -n "${OPENAI_API_KEY:-}" ] || unset OPENAI_API_KEY
input=/dev/null
[ "$ACTION_COMMAND" != prompt ] || input=$ACTION_TEXT
"$CODESPAR" "$@" <"$input" >"$dir/out.json" 2>"$dir/progress.txt" &
child=$!
trap 'kill "$child" 2>/dev/null || true' INT TERM HUP

# The steps alone: other lines may quote what tests print.
steps() {
    sed 's/\x1b\[[0-9;]*m//g' "$dir/progress.txt" | LC_ALL=C grep -a '^[^ -~]' | tr -d '`\r' | tail -n 12 || true
}
shown=
while kill -0 "$child" 2>/dev/null; do
    sleep "${ACTION_PROGRESS_SECONDS:-10}"
    now=$(steps)
    if [ "$now" != "$shown" ]; then
        shown=$now
        # shellcheck disable=SC2016 # a fence of markdown
        printf '⏳ **CodeSpar** is working on it.\n\n```\n%s\n```\n' "$now" >"$dir/says.md"
        say "$dir/says.md"
    fi
done
code=0
wait "$child" || code=$?
cat "$dir/progress.txt" >&2

output() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}
get() {
    jq -r "($1) // empty" "$dir/out.json" 2>/dev/null | head -n 1
}
if ! jq -e 'type == "object"' "$dir/out.json" >/dev/null 2>&1; then
    {
        printf '❌ **CodeSpar** did not come to a result (exit code %s).\n\n```\n' "$code"
        sed 's/\x1b\[[0-9;]*m//g' "$dir/progress.txt" | tr -d '`\r' | tail -n 5
        printf '```\n'
    } >"$dir/says.md"
    say "$dir/says.md"
    [ "$code" -ne 0 ] || code=1
    exit "$code"
fi

output branch "$(get .branch)"
output pr "$(get '.pull_request.number // .number')"
output pr-url "$(get .pull_request.url)"
output cost "$(get '.cost_usd // .total_cost_usd')"
# A value of many lines, or of a line that looks like another output, must not end early.
mark=codespar-$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
{
    printf 'structured-output<<%s\n' "$mark"
    jq -c 'if has("structured_output") then .structured_output else . end' "$dir/out.json"
    printf '%s\n' "$mark"
} >>"$GITHUB_OUTPUT"

cost=$(get '.cost_usd // .total_cost_usd')
{
    case $ACTION_COMMAND in
        dev)
            if [ -n "$(get .pull_request.number)" ]; then
                case $(get .verification.after.exit_code) in
                    0) printf '✅ **CodeSpar** opened ' ;;
                    *) printf '⚠️ **CodeSpar** opened, with tests that do not pass or were not run, ' ;;
                esac
                # shellcheck disable=SC2016 # code in markdown
                printf '#%s on `%s`.\n' "$(get .pull_request.number)" "$(get .branch | tr -d '`')"
            else
                printf '❌ **CodeSpar** did not come to a pull request: %s\n' "$(get '.error.message // .error' | tr -d '`')"
            fi
            ;;
        review) printf '✅ **CodeSpar** reviewed #%s.\n' "$ACTION_PULL" ;;
        prompt) get .result ;;
    esac
    [ -z "$cost" ] || printf '\nCost: $%s\n' "$cost"
} >"$dir/says.md"
say "$dir/says.md"
exit "$code"
