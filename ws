#!/usr/bin/env bash
# The launcher: makes .venv beside this file, installs warpsmith there, runs the command given.
#
#   ./ws                       what warpsmith is and what to try next
#   ./ws run examples/saxpy.cu
#   ./ws test [pytest args]    everything: ruff, mypy, pytest; with arguments, only pytest with them
#   ./ws bench [NAME ...]      benchmarks/NAME.py
#   ./ws python [FILE ...]     Python with warpsmith installed
#   ./ws CMD ...               any other command of warpsmith
#
# It needs bash and python3 (3.11 or newer, with venv); nothing is installed outside .venv.
set -u

root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd) || exit 1
venv=$root/.venv
python=$venv/bin/python
mark=$venv/.ws-installing

say() { printf 'warpsmith: %s\n' "$*" >&2; }
die() { say "$@"; exit 86; }

# ---- is what is installed still right? ---------------------------------------------------------------
# Two stamps in .venv, each written only after its step succeeded: one for the installed packages, one
# for the C++ libraries.  The path is part of it because an editable install does not survive a move.
# Settings of ruff, mypy and pytest (from [tool.ruff] on) change nothing that is installed.
key() { { printf '%s\n' "$root"; cat "$@"; } | sed '/^\[tool\.ruff/,/^\[tool\.end/d' | sha256sum | cut -d' ' -f1; }
packages_key() { key "$root/setup.py" "$root/pyproject.toml"; }
native_key() {
  shopt -s nullglob
  local package=$root/src/warpsmith
  key "$package/toolchains/native.py" "$package"/devices/emulator/runtime/*.{cpp,hpp,h} "$package"/cudart/*.{cpp,hpp,h}
}
stamped() { local have; [[ -r $1 ]] && read -r have <"$1" && [[ $have == "$2" ]]; }

# ---- set-up ------------------------------------------------------------------------------------------
find_python() {
  local name
  for name in python3 python3.13 python3.12 python3.11 python3.14; do
    if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      printf '%s' "$name"
      return
    fi
  done
  return 1
}

# Runs a long step with its output in a log: silent for two seconds, then one line that says what goes
# on (rewritten in place on a terminal); on failure the log's last lines.  Leaves step_status.
step() {
  local what=$1 log=$root/build/ws.log pid started=$SECONDS shown='' line
  shift
  "$@" >"$log" 2>&1 </dev/null 9>&- &  # what a broken-off step leaves running must not hold the lock
  pid=$!
  trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; say "interrupted; the next call starts the set-up again"; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    if ((SECONDS - started >= 2)); then
      if [[ -t 2 ]]; then
        line=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-60)
        printf '\r\033[Kwarpsmith: %s, %d s: %s' "$what" $((SECONDS - started)) "$line" >&2
        shown=yes
      elif [[ -z $shown ]]; then
        say "$what ..."
        shown=yes
      fi
    fi
    sleep 0.1
  done
  wait "$pid"
  step_status=$?
  trap - INT TERM
  [[ -t 2 && -n $shown ]] && printf '\r\033[K' >&2
  if ((step_status)); then
    say "$what failed; the last lines of $log:"
    tail -n 15 "$log" >&2
  fi
}

# While a mark stands, what is in .venv cannot be trusted: a step was broken off before it ended.
# A folder that somebody else made is used, but never deleted (no .ws-made in it).
install() { # install WHAT REQUIREMENT STAMP...
  local what=$1 requirement=$2 stamp
  shift 2
  rm -f "$@"
  : >"$mark"
  step "$what" "$python" -m pip install --disable-pip-version-check --no-input --no-compile --progress-bar off -e "$requirement"
  rm -f "$mark"
  ((step_status == 0)) || exit 86
  for stamp; do printf '%s\n' "$packages" >"$stamp"; done
}

make_venv() {
  local base
  base=$(find_python) || die 'Python 3.11 or newer is needed (looked for python3, python3.13, python3.12, python3.11)'
  if ! "$base" -c 'import venv, ensurepip' 2>/dev/null; then
    die "$base has no venv module; on Debian or Ubuntu: sudo apt install $(
      "$base" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  fi
  if [[ -d $venv && ! -e $venv/.ws-made ]]; then
    die "$venv has no usable Python 3.11 or newer and was not made by ./ws; remove or rename it"
  fi
  rm -rf "$venv"
  mkdir -p "$venv" && : >"$venv/.ws-made" && : >"$mark" || exit 1
  step 'making .venv' "$base" -m venv "$venv"
  ((step_status == 0)) || exit 86
}

# Two calls at once must not install into each other; the second finds the work done.
lock() {
  mkdir -p "$root/build" && exec 9>"$root/build/ws.lock" || exit 1
  if command -v flock >/dev/null && ! flock -n 9; then
    say 'waiting for another call that is setting up'
    flock 9
  fi
}
unlock() { exec 9>&-; }

set_up() {
  lock
  command -v "${CXX:-g++}" >/dev/null || command -v c++ >/dev/null || command -v clang++ >/dev/null ||
    die 'no C++ compiler found (g++); on Debian or Ubuntu: sudo apt install g++'
  [[ -e $mark && -e $venv/.ws-made ]] && rm -rf "$venv"
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || make_venv
  if ! stamped "$venv/.ws-packages" "$packages"; then
    "$python" -m pip --version >/dev/null 2>&1 || die "$venv has no pip; remove that folder and call ./ws again"
    install 'installing into .venv (CUDA compilers and LLVM: about 400 MB, once)' "$root[cuda]" "$venv/.ws-packages"
  elif ! stamped "$venv/.ws-native" "$native"; then
    step 'building the C++ libraries' "$python" "$root/src/warpsmith/toolchains/native.py"
    ((step_status == 0)) || exit 86
  fi
  printf '%s\n' "$native" >"$venv/.ws-native"
  unlock
}

packages=$(packages_key)
native=$(native_key)
if ! stamped "$venv/.ws-packages" "$packages" || ! stamped "$venv/.ws-native" "$native" || [[ ! -x $python ]]; then
  set_up
fi

# ---- run ---------------------------------------------------------------------------------------------
run_tests() {
  cd "$root" || exit 1
  if ! stamped "$venv/.ws-test" "$packages"; then
    lock
    install 'installing what tests need' "$root[cuda,test]" "$venv/.ws-packages" "$venv/.ws-test"
    unlock
  fi
  if (($#)); then
    exec "$python" -m pytest "$@"
  fi
  local status=0
  "$python" -m ruff check . || status=1
  "$python" -m mypy || status=1
  "$python" -m pytest -n 2 || status=1
  exit $status
}

run_benchmarks() {
  local name file status=0
  if ! (($#)); then
    echo 'benchmarks:'
    for file in "$root"/benchmarks/*.py; do echo "  ./ws bench $(basename "$file" .py)"; done
    return
  fi
  name=$1
  shift
  file=$root/benchmarks/$name.py
  if [[ ! -f $file ]]; then
    say "there is no benchmark $name; ./ws bench lists them"
    exit 80
  fi
  exec "$python" "$file" "$@"
}

case ${1-} in
  test) shift && run_tests "$@" ;;
  bench) shift && run_benchmarks "$@" ;;
  python) shift && exec "$python" "$@" ;;
  # -P: the caller's folder must not provide modules to Python
  *) WARPSMITH_PROGRAM=$0 exec "$python" -P -m warpsmith "$@" ;;
esac
