# Installs the Debian packages of scripts/packages.txt. To be sourced.
#
#   install_packages GROUP...
#
# Silent and fast (one dpkg-query) when nothing is missing. Otherwise prints each command before it runs, on
# stderr, and uses sudo when not root. Returns 1 with a message when it cannot install.

packages_say() { printf '%s\n' "$*" >&2; }

# Runs a command as root, after printing it.
packages_as_root() {
  local -a prefix=()
  if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null; then
      packages_say "error: this needs root and there is no sudo; run as root: $*"
      return 1
    fi
    prefix=(sudo)
    [ -t 0 ] || prefix=(sudo -n)
  fi
  packages_say "+${prefix[*]:+ ${prefix[*]}} $*"
  "${prefix[@]}" "$@" >&2 </dev/null
}

# Prints the wanted lines (name or a|b|c) of the groups that no installed package meets.
packages_missing() {
  local list=$1 installed group wanted name met
  shift
  installed=" $(dpkg-query -W -f '${db:Status-Status} ${Package}\n' | sed -n 's/^installed //p' | tr '\n' ' ')"
  while read -r group wanted _; do
    case " $* " in *" $group "*) ;; *) continue ;; esac
    met=no
    for name in ${wanted//|/ }; do
      case $installed in *" $name "*) met=yes ;; esac
    done
    [ $met = yes ] || printf '%s\n' "$wanted"
  done <"$list"
}

# Prints the first name of a|b|c that the distribution's lists have.
packages_choose() {
  local name
  for name in ${1//|/ }; do
    if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
      printf '%s\n' "$name"
      return 0
    fi
  done
  packages_say "error: no package ${1//|/ or } in the package lists: Debian 12 or newer is needed"
  return 1
}

install_packages() {
  local list missing wanted name
  local -a names=()
  list="$(dirname "${BASH_SOURCE[0]}")/../packages.txt"
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    packages_say "note: not a Debian system; the packages of scripts/packages.txt are taken as installed"
    return 0
  fi
  missing=$(packages_missing "$list" "$@") || return 1
  [ -n "$missing" ] || return 0
  packages_say "packages missing:" $missing
  packages_as_root apt-get update -q || {
    packages_say "error: apt-get update failed (offline?); the packages above are still missing"
    return 1
  }
  for wanted in $missing; do
    name=$(packages_choose "$wanted") || return 1
    names+=("$name")
  done
  packages_as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends \
    -o DPkg::Lock::Timeout=300 "${names[@]}" || {
    packages_say "error: apt-get could not install: ${names[*]}"
    return 1
  }
}
