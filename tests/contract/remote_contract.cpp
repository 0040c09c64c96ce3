// The contract on a remote Store: to a Tabella process, and to Amazon's DynamoDB Local.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <atomic>

#include <fmt/format.h>

#include "base/environment.h"
#include "contract/subjects.h"
#include "remote/remote_store.h"
#include "support/folder.h"
#include "support/process.h"

namespace tabella::contract {
namespace {

std::unique_ptr<remote::RemoteStore> store_at(uint16_t port, const Clock& clock,
                                              std::string access_key = "contract") {
  remote::RemoteOptions options;
  options.calls.endpoint = *remote::parse_endpoint(fmt::format("http://127.0.0.1:{}", port), "us-east-1");
  options.calls.credentials.given =
      remote::Credentials{.access_key = std::move(access_key), .secret_key = "secret"};
  options.stream_poll = std::chrono::milliseconds{5};
  return std::make_unique<remote::RemoteStore>(std::move(options), clock);
}

// Our clock and that of another process (support/move_time.c), moved together.
class SharedClock final : public Clock {
 public:
  explicit SharedClock(const std::string& file) {
    const int handle = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (handle < 0 || ftruncate(handle, sizeof(int64_t)) != 0) throw std::runtime_error("no " + file);
    auto* mapped = mmap(nullptr, sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, handle, 0);
    ahead_ = new (mapped) std::atomic<int64_t>(0);
    close(handle);
  }
  ~SharedClock() override { munmap(ahead_, sizeof(int64_t)); }
  SharedClock(const SharedClock&) = delete;
  SharedClock& operator=(const SharedClock&) = delete;

  TimePoint now() const override {
    return std::chrono::system_clock::now() + std::chrono::nanoseconds(ahead_->load());
  }
  Elapsed elapsed() const override { return now().time_since_epoch(); }
  void advance(std::chrono::nanoseconds by) { *ahead_ += by.count(); }

 private:
  std::atomic<int64_t>* ahead_;
};

class TabellaSubject final : public Subject {
 public:
  TabellaSubject() : port_(test::free_port()), clock_(time_file()), store_(store_at(port_, clock_)) {
    restart();
  }

  store::Store& store() override { return *store_; }

  void restart() override {
    if (process_) process_->end(SIGTERM);
    process_ = std::make_unique<test::Process>(
        std::vector<std::string>{environment_variable("TABELLA"), "serve", "--data",
                                 (folder_.path() / "data").string(), "--dynamodb",
                                 fmt::format("127.0.0.1:{}", port_), "--http", "off", "--smtp", "off",
                                 "--durability", "relaxed", "--log-level", "warning"},
        "serves DynamoDB on",
        test::Process::Variables{"LD_PRELOAD=" + environment_variable("MOVE_TIME"),
                                 "MOVE_TIME_FILE=" + time_file()});
  }

  const Clock& clock() const override { return clock_; }
  bool advance(std::chrono::milliseconds by) override {
    clock_.advance(by);
    return true;
  }

 private:
  std::string time_file() const { return (folder_.path() / "time").string(); }

  const uint16_t port_;
  test::Folder folder_;
  SharedClock clock_;
  std::unique_ptr<test::Process> process_;
  std::unique_ptr<remote::RemoteStore> store_;
};

// One process for all tests: it takes seconds to start. Each test has a key of its own, and with it a
// database of its own.
class DynamoDbLocalSubject final : public Subject {
 public:
  DynamoDbLocalSubject() {
    static int number = 0;
    store_ = store_at(port(), clock_, fmt::format("contract{}", ++number));
  }

  store::Store& store() override { return *store_; }
  void restart() override {}
  const Clock& clock() const override { return clock_; }
  bool advance(std::chrono::milliseconds) override { return false; }
  bool is_dynamodb_local() const override { return true; }
  // The version of npm, not the one that Maven brings.
  bool is_old() const override {
    static const bool old = [] {
      auto* answer = popen((environment_variable("DYNAMODB_LOCAL") + " kind").c_str(), "r");
      char kind[16] = {};
      const bool read = answer && fgets(kind, sizeof kind, answer);
      if (answer) pclose(answer);
      return read && std::string_view(kind).starts_with("npm");
    }();
    return old;
  }

 private:
  static uint16_t port() {
    static const uint16_t port = test::free_port();
    static const test::Process process({environment_variable("DYNAMODB_LOCAL"), std::to_string(port)},
                                       "Initializing DynamoDB Local");
    return port;
  }

  SystemClock clock_;
  std::unique_ptr<remote::RemoteStore> store_;
};

}  // namespace

std::unique_ptr<Subject> make_remote_to_tabella() { return std::make_unique<TabellaSubject>(); }
std::unique_ptr<Subject> make_remote_to_dynamodb_local() { return std::make_unique<DynamoDbLocalSubject>(); }

}  // namespace tabella::contract
