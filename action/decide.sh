#!/bin/sh
# Decides what an event of GitHub asks for, and whether whoever caused it may ask.
#
# Outputs: run (true, false), reason, command (dev, review, prompt), number and pull (of the issue or
# pull request, empty without one; pull is empty for an issue), text (the file with the instruction).
#
# Everything in the event was written by others. It is read with jq into variables and files, and is
# never part of a command line that a shell reads.

set -eu

event=$GITHUB_EVENT_PATH
api=${GITHUB_API_URL:-https://api.github.com}
dir=${RUNNER_TEMP:-/tmp}/codespar-action
text=$dir/instruction.txt
mkdir -p "$dir"
: >"$text"

output() {
    printf '%s=%s\n' "$1" "$2" >>"$GITHUB_OUTPUT"
}

nothing() {
    output run false
    output reason "$1"
    printf 'nothing to do: %s\n' "$1"
    exit 0
}

for program in jq curl; do
    command -v "$program" >/dev/null 2>&1 || {
        printf '::error::%s is not installed on this runner\n' "$program"
        exit 1
    }
done

field() {
    jq -r "($1) // empty" "$event"
}

# The token goes by a file, not by the arguments, which other processes can see.
ask() {
    printf 'header = "Authorization: Bearer %s"\n' "$GITHUB_TOKEN" |
        curl --config - --fail --silent --show-error --max-time 60 --retry 2 \
            --header 'Accept: application/vnd.github+json' "$api/$1"
}

# Who writes to the repository may ask. `author_association` says less: members of an organisation
# need not have any right here.
may_write() {
    case $1 in
        '' | *[!A-Za-z0-9-]*) return 1 ;;
    esac
    level=$(ask "repos/$GITHUB_REPOSITORY/collaborators/$1/permission" | jq -r .permission) || return 1
    case $level in
        admin | maintain | write) return 0 ;;
        *) return 1 ;;
    esac
}

number=$(field '.issue.number // .pull_request.number')
case $number in
    *[!0-9]*) nothing "the event has no number of an issue" ;;
esac
pull=
if [ "$(jq -r 'has("pull_request") or (.issue.pull_request != null)' "$event")" = true ]; then
    pull=$number
fi

# The branch of a pull request may be in a fork: its code is a stranger's.
is_fork() {
    [ -n "$pull" ] || return 1
    same=$(ask "repos/$GITHUB_REPOSITORY/pulls/$pull" |
        jq -r '.head.repo.full_name != null and .head.repo.full_name == .base.repo.full_name') || return 0
    [ "$same" != true ]
}

finish() {
    output run true
    output command "$1"
    output number "$number"
    output pull "$pull"
    output text "$text"
    printf '%s for %s\n' "$1" "${number:+#}${number:-this workflow}"
    exit 0
}

if [ -n "${INPUT_PROMPT:-}" ]; then
    case ${INPUT_COMMAND:-dev} in
        dev | prompt | review) ;;
        *)
            printf '::error::command is %s; it is dev, review or prompt\n' "$INPUT_COMMAND"
            exit 1
            ;;
    esac
    if [ "${INPUT_COMMAND:-dev}" != review ] && is_fork; then
        nothing "the pull request comes from a fork; it can only be reviewed"
    fi
    printf '%s\n' "$INPUT_PROMPT" >"$text"
    finish "${INPUT_COMMAND:-dev}"
fi

case $GITHUB_EVENT_NAME in
    issue_comment | pull_request_review_comment)
        [ "$(field .action)" = created ] || nothing "only new comments are read"
        field .comment.body >"$dir/body.txt"
        who=$(field .comment.user.login)
        kind=$(field .comment.user.type)
        ;;
    pull_request_review)
        [ "$(field .action)" = submitted ] || nothing "only new reviews are read"
        field .review.body >"$dir/body.txt"
        who=$(field .review.user.login)
        kind=$(field .review.user.type)
        ;;
    issues)
        [ "$(field .action)" = labeled ] || nothing "only the label ${INPUT_LABEL:-codespar} asks for something"
        [ "$(field .label.name)" = "${INPUT_LABEL:-codespar}" ] || nothing "it is another label"
        who=$(field .sender.login)
        kind=$(field .sender.type)
        ;;
    *) nothing "the event $GITHUB_EVENT_NAME asks for nothing without a prompt" ;;
esac
[ "$kind" = User ] || nothing "$who is not a person"

if [ "$GITHUB_EVENT_NAME" = issues ]; then
    may_write "$who" || nothing "$who may not write to $GITHUB_REPOSITORY"
    {
        printf 'Fix issue #%s: %s\n\n' "$number" "$(field .issue.title)"
        field .issue.body
    } >"$text"
    finish dev
fi

# What follows the first mention that is a word of its own.
trigger=${INPUT_TRIGGER:-@codespar}
awk -v trigger="$trigger" '
    found { print; next }
    {
        rest = $0; before = ""
        while ((at = index(rest, trigger)) > 0) {
            left = at > 1 ? substr(rest, at - 1, 1) : substr(before, length(before), 1)
            right = substr(rest, at + length(trigger), 1)
            if (left !~ /[A-Za-z0-9_.@\/-]/ && right !~ /[A-Za-z0-9_-]/) {
                found = 1
                print substr(rest, at + length(trigger))
                next
            }
            before = before substr(rest, 1, at + length(trigger) - 1)
            rest = substr(rest, at + length(trigger))
        }
    }
    END { exit !found }
' "$dir/body.txt" >"$dir/asked.txt" || nothing "$trigger is not mentioned"
grep -q '[^[:space:]]' "$dir/asked.txt" || nothing "nothing follows $trigger"
may_write "$who" || nothing "$who may not write to $GITHUB_REPOSITORY"

word=$(sed -n '/[^[:space:]]/{s/^[[:space:]:,]*//;s/[^A-Za-z].*//;p;q;}' "$dir/asked.txt" | tr '[:upper:]' '[:lower:]')
if [ "$word" = review ]; then
    [ -n "$pull" ] || nothing "there is no pull request to review here"
    finish review
fi
if is_fork; then
    nothing "the pull request comes from a fork; it can only be reviewed"
fi
{
    cat "$dir/asked.txt"
    if [ -z "$pull" ]; then
        printf '\nThe request was written below issue #%s: %s\n\n' "$number" "$(field .issue.title)"
        field .issue.body
    fi
} >"$text"
finish dev
