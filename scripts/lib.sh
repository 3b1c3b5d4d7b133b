# Shared by the scripts of this folder: what to say, and what must be there.
# shellcheck shell=bash

set -euo pipefail
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
export DORMOUSE_HOME=${DORMOUSE_HOME:-$ROOT/.dormouse}

# When the first of the scripts that call each other began, in seconds since 1970.
export STARTED=${STARTED:-$(date +%s)}

# With the minutes and seconds since then, so that a log shows what took how long.
say() {
    local passed=$(($(date +%s) - STARTED))
    printf '\033[1m==>\033[0m %d:%02d %s\n' $((passed / 60)) $((passed % 60)) "$*"
}
die() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; exit 1; }

# need_value OPTION WHAT VALUE: ends the script where an option has no value.
need_value() { [ -n "${3-}" ] || die "$1 needs $2"; }

# unlocked COMMAND...: runs a command of apt, once no other has the lock that it wants; ten minutes at most.
unlocked() {
    local said left=300 waits=''
    until said=$("$@" 2>&1 >/dev/null); do
        left=$((left - 1))
        case $said in *'get lock'* | *'is another process using it'* | *'is held by process'*) ;; *) left=0 ;; esac
        if [ "$left" -le 0 ]; then
            printf '%s\n' "$said" >&2
            return 1
        fi
        [ -n "$waits" ] || say "another apt is at work here: waiting for it"
        waits=yes
        sleep 2
    done
}

# need_packages COMMAND=PACKAGE...: installs the Debian packages of commands that are missing.
need_packages() {
    local missing=() pair
    for pair in "$@"; do
        command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
    done
    [ ${#missing[@]} -eq 0 ] && return
    command -v apt-get >/dev/null || die "missing: ${missing[*]}; install them with your package manager"
    [ "$(id -u)" -eq 0 ] || die "missing: ${missing[*]}; run as root, or install them first"
    say "installing ${missing[*]}"
    unlocked apt-get update -qq
    DEBIAN_FRONTEND=noninteractive unlocked apt-get install -y -qq --no-install-recommends "${missing[@]}"
}

# The Rust toolchain that rust-toolchain.toml names, and a C linker.
need_toolchain() {
    need_packages cc=gcc ld=binutils
    [ -e /usr/include/stdlib.h ] || need_packages "no-such-command=libc6-dev"
    export PATH=$PATH:$HOME/.cargo/bin
    if ! command -v cargo >/dev/null; then
        if apt-cache show rustup >/dev/null 2>&1; then
            need_packages rustup=rustup
        else
            die "the Rust toolchain is missing and this Debian has no rustup package: install it from https://rustup.rs and run this again"
        fi
    fi
    local wanted
    wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' "$ROOT/rust-toolchain.toml")
    if ! (cd "$ROOT" && cargo --version >/dev/null 2>&1); then
        command -v rustup >/dev/null || die "cargo here is not $wanted and there is no rustup to install it"
        say "installing Rust $wanted"
        rustup toolchain install "$wanted" --profile minimal --component rustfmt,clippy
    fi
    say "toolchain: $(cd "$ROOT" && cargo --version)"
}

# A CRIU that works on this kernel. Live runs with checkpoints need it, nothing else does.
need_criu() {
    if [ "$(id -u)" -ne 0 ]; then
        say "not root: no CRIU, no live runs; virtual runs work"
        return 1
    fi
    "$ROOT/scripts/get-criu"
}

# Builds what scripts/test-v2 runs, and prints what cargo says of that. As `scripts/test` builds, whose builds are used again:
# whatever chooses other targets builds the dependencies once more, with other features. `task_program` is the test whose
# package has the two programs.
build_for_v2() {
    cargo test --locked --quiet --workspace --test task_program --test linux --test agent --no-run \
        --message-format json-render-diagnostics
}

# Whether a Docker engine answers; $why_no_docker says why not, and what to do.
need_docker() {
    why_no_docker='Docker is missing: install docker.io, or Docker Engine'
    command -v docker >/dev/null || return 1
    why_no_docker="no Docker engine answers (start dockerd; who is not root has to be in the group docker): $(
        docker version --format '{{.Server.Version}}' 2>&1 >/dev/null | tail -n 1)"
    docker version --format '{{.Server.Version}}' >/dev/null 2>&1
}

# Whether a Docker engine answers, or could be had: where there is none root gets one, installed and running. Whoever calls
# this calls end_docker at its end.
docker_engine=''
start_docker() {
    if [ "$(id -u)" -eq 0 ] && ! need_docker; then
        need_packages dockerd=docker.io iptables=iptables
        # Where it is a package of its own.
        need_packages docker=docker-cli
        say "starting a Docker engine"
        mkdir -p "$DORMOUSE_HOME"
        dockerd >"$DORMOUSE_HOME/dockerd.log" 2>&1 &
        docker_engine=$!
        for _ in {1..600}; do
            if need_docker || ! kill -0 "$docker_engine" 2>/dev/null; then break; fi
            sleep 0.1
        done
        need_docker || tail -n 3 "$DORMOUSE_HOME/dockerd.log" >&2
    fi
    need_docker
}
# Waits for its end, so that another one can begin.
end_docker() {
    [ -n "$docker_engine" ] || return 0
    kill "$docker_engine" 2>/dev/null || true
    wait "$docker_engine" 2>/dev/null || true
}

# The time that files are given which have to be the same whenever they are made: that of the last commit.
source_date() { echo "${SOURCE_DATE_EPOCH:-$(git -C "$ROOT" log -1 --format=%ct 2>/dev/null || echo 0)}"; }

# The newest version of the C library that has all of which these programs need a symbol, as 2.34.
needed_glibc() { objdump -T "$@" | grep -oE 'GLIBC_[0-9]+\.[0-9]+' | sort -Vu | tail -n 1 | cut -d_ -f2; }
