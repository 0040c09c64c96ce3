# Installs what is missing of the Debian packages that it is given, saying which; with sudo when not root. Asks
# nothing. Sourced by ./run, ./test and ./bench.

readonly build_packages=(clang-19 mold ccache cmake ninja-build libboost1.81-dev librocksdb-dev libsimdjson-dev
  libssl-dev zlib1g-dev libxxhash-dev libspdlog-dev libfmt-dev libcli11-dev libtomlplusplus-dev libgtest-dev
  libjemalloc-dev libdeflate-dev libutf8proc-dev libmariadb-dev libc-ares-dev libre2-dev libabsl-dev tzdata nodejs npm)
# The programs of MariaDB and dnsmasq without the packages that would start them as services.
readonly test_packages=(clang-format-19 clang-tidy-19 libclang-rt-19-dev llvm-19 python3 python3-boto3 awscli
  chromium curl openssl default-jdk-headless maven postfix swaks libnet-ssleay-perl libdigest-hmac-perl libauthen-sasl-perl
  mariadb-server-core mariadb-client-core dnsmasq-base python3-dkim python3-nacl python3-pymysql)
# The server of Redis is a program of its tools under another name; redis-server would start it as a service.
readonly bench_packages=(wrk nginx-light default-jre-headless maven procps python3 postfix curl redis-tools
  postgresql)

installed() { dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# A program that is already on the PATH need not come from Debian.
provided() {
  case "$1" in
    nodejs) command -v node ;;
    npm) command -v npm ;;
    default-jre-headless) command -v java ;;
    default-jdk-headless) command -v javac ;;
    maven) command -v mvn ;;
    *) return 1 ;;
  esac >/dev/null 2>&1
}

install_missing() {
  local missing=() package
  for package in "$@"; do
    installed "$package" || provided "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  local sudo=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "These packages are missing, and there is no sudo to install them: ${missing[*]}" >&2; exit 1; }
    sudo=(sudo)
  fi
  echo "Installing ${missing[*]}"
  "${sudo[@]}" apt-get update -qq
  # Of Postfix only its programs are wanted: it is not to become this machine's mail server.
  printf 'postfix postfix/main_mailer_type select No configuration\n' | "${sudo[@]}" debconf-set-selections 2>/dev/null || true
  # Likewise PostgreSQL: without this it would begin to serve a database of its own.
  if [[ " ${missing[*]} " == *" postgresql "* ]]; then
    "${sudo[@]}" mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' | "${sudo[@]}" tee /etc/postgresql-common/createcluster.d/tabella-bench.conf >/dev/null
  fi
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Configures (once) and builds a preset: build_preset release [target…]
build_preset() {
  local preset=$1
  shift
  [ -f "build/$preset/build.ninja" ] || cmake --preset "$preset" >/dev/null
  cmake --build "build/$preset" -- "$@"
}
