# How the stages of scripts/test run and count their checks. To be sourced; needs root, logs, counts, stage.
#
#   check LABEL COMMAND...     one check: passes when the command exits 0
#   counted LABEL COMMAND...   many checks: the command's last line is "checks: N passed, N failed"
#
# The output goes to build/test-logs/STAGE/LABEL.log; of a failure the end is shown. Both return whether all
# passed, and both record what they counted in the file $counts, one "PASSED FAILED STAGE LABEL" a line.
# A command that runs longer than KVASIR_CHECK_SECONDS (default 1200) is ended and has failed.

record() { printf '%s %s %s %s\n' "$1" "$2" "$stage" "$3" >>"$counts"; }

# Names of what failed within a check, from its log: programs of unit_tests.py, cases of unittest and of doctest.
failed_names() {
  awk '/^failed: / {sub(/^failed: /, ""); print}
       /^(FAIL|ERROR): / {print $2}
       /^TEST CASE: / {name = $0; sub(/^TEST CASE: +/, "", name)}
       / ERROR: / && name != "" {print name; name = ""}' "$1" | sort -u | head -n 12 | paste -s -d ';' | cut -c 1-600
}

log_of() { printf '%s/%s/%s.log' "$logs" "$stage" "$(printf '%s' "$1" | tr -c 'A-Za-z0-9._-' '_')"; }

# Runs COMMAND with no standard input; its output in the log; sets `seconds`.
run_logged() {
  local log=$1 status=0 start=$SECONDS
  shift
  mkdir -p "$(dirname "$log")"
  { printf '+'; printf ' %q' "$@"; printf '\n'; } >"$log"
  if [ "$(type -t "$1")" = function ]; then
    ( set -eu; "$@" ) >>"$log" 2>&1 </dev/null || status=$?
  else
    timeout --kill-after=10 "${KVASIR_CHECK_SECONDS:-1200}" "$@" >>"$log" 2>&1 </dev/null || status=$?
  fi
  seconds=$((SECONDS - start))
  return "$status"
}

show_end() {
  tail -n "${KVASIR_LOG_LINES:-40}" "$1" | cut -c 1-400 | sed 's/^/      | /'
  printf '      whole log: %s\n' "${1#"$root"/}"
}

check() {
  local label=$1 log status=0 seconds
  shift
  log=$(log_of "$label")
  run_logged "$log" "$@" || status=$?
  if [ "$status" -eq 0 ]; then
    record 1 0 "$label"
    printf '  ok      %s (%d s)\n' "$label" "$seconds"
    return 0
  fi
  record 0 1 "$label"
  printf '  FAILED  %s (exit %d, %d s)\n' "$label" "$status" "$seconds"
  show_end "$log"
  return 1
}

counted() {
  local label=$1 log status=0 seconds last names='' passed=0 failed=0
  shift
  log=$(log_of "$label")
  run_logged "$log" "$@" || status=$?
  last=$(tail -n 1 "$log")
  if [[ $last =~ ^checks:\ ([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=${BASH_REMATCH[1]} failed=${BASH_REMATCH[2]}
  fi
  [ "$failed" -eq 0 ] && [ "$status" -eq 0 ] || names=$(failed_names "$log")
  # A crash, a missing count and a count of nothing are failures too.
  if [ "$failed" -eq 0 ] && { [ "$status" -ne 0 ] || [ "$passed" -eq 0 ]; }; then failed=1; fi
  record "$passed" "$failed" "$label${names:+: $names}"
  if [ "$failed" -eq 0 ]; then
    printf '  ok      %s (%d checks, %d s)\n' "$label" "$passed" "$seconds"
    sed -n 's/^figure: /          /p' "$log"
    return 0
  fi
  printf '  FAILED  %s (%d of %d checks, exit %d, %d s)\n' "$label" "$failed" "$((passed + failed))" "$status" "$seconds"
  show_end "$log"
  return 1
}
