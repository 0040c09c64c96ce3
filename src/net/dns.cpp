#include "net/dns.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <netinet/in.h>
#include <sys/time.h>
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <boost/asio/bind_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/hash.h"
#include "base/text.h"
#include "net/by_value.h"
#include "net/url.h"

namespace tabella::net {
namespace {

namespace asio = boost::asio;
using std::chrono::seconds;
using DnsStrand = asio::strand<asio::any_io_executor>;
using DnsClock = std::chrono::steady_clock;
using DnsBytes = std::span<const unsigned char>;

// An answer, and for how long it may be repeated; 0: not at all.
template <class T>
struct Looked {
  DnsResult<T> result;
  seconds lifetime{0};
};

std::unexpected<DnsError> dns_failure(int status) {
  const bool absent = status == ARES_ENODATA || status == ARES_ENOTFOUND || status == ARES_EBADNAME;
  return std::unexpected(DnsError{.kind = absent ? DnsError::Kind::not_found : DnsError::Kind::temporary,
                                  .message = ares_strerror(status)});
}

// Goes through the records of a reply, of which c-ares 1.18 keeps the TTLs to itself.
class ReplyRecords {
 public:
  explicit ReplyRecords(DnsBytes reply) : reply_(reply), at_(NS_HFIXEDSZ) {
    if (reply_.size() < NS_HFIXEDSZ) return;
    answers_ = number(6, 2);
    left_ = answers_ + number(8, 2);
    for (uint32_t questions = number(4, 2); questions > 0; --questions) {
      skip_name();
      at_ += NS_QFIXEDSZ;
    }
  }

  struct Record {
    bool is_answer = false;
    uint32_t type = 0;
    uint32_t ttl = 0;
    DnsBytes data;
  };
  // Of the answers and then of the authorities; nothing behind the last, or where they cannot be read.
  std::optional<Record> next() {
    if (left_ == 0) return std::nullopt;
    skip_name();
    if (at_ + NS_RRFIXEDSZ > reply_.size()) return std::nullopt;
    Record record{.is_answer = answers_ > 0, .type = number(at_, 2), .ttl = number(at_ + 4, 4)};
    const auto length = number(at_ + 8, 2);
    at_ += NS_RRFIXEDSZ;
    if (at_ + length > reply_.size()) return std::nullopt;
    record.data = reply_.subspan(at_, length);
    at_ += length;
    --left_;
    if (answers_ > 0) --answers_;
    return record;
  }

 private:
  uint32_t number(size_t at, size_t bytes) const {
    uint32_t value = 0;
    for (size_t i = 0; i < bytes; ++i) value = value << 8 | reply_[at + i];
    return value;
  }
  // Labels up to an empty one, or to a pointer elsewhere.
  void skip_name() {
    while (at_ < reply_.size() && reply_[at_] != 0 && reply_[at_] < NS_CMPRSFLGS) at_ += 1 + reply_[at_];
    at_ += at_ < reply_.size() && reply_[at_] >= NS_CMPRSFLGS ? 2 : 1;
  }

  const DnsBytes reply_;
  size_t at_;
  uint32_t answers_ = 0;
  uint32_t left_ = 0;
};

// The least of what its records say; of a reply without an answer, what the zone says about those (RFC 2308).
seconds lifetime_of(DnsBytes reply) {
  std::optional<uint32_t> answer;
  std::optional<uint32_t> absence;
  ReplyRecords records(reply);
  while (const auto record = records.next()) {
    if (record->is_answer) answer = std::min(answer.value_or(record->ttl), record->ttl);
    if (record->is_answer || record->type != ns_t_soa || record->data.size() < 4) continue;
    uint32_t minimum = 0;  // the last of its numbers
    for (const auto byte : record->data.last(4)) minimum = minimum << 8 | byte;
    absence = std::min(record->ttl, minimum);
  }
  return seconds(answer ? *answer : absence.value_or(0));
}

struct AresFree {
  void operator()(void* data) const { ares_free_data(data); }
  void operator()(ares_addrinfo* info) const { ares_freeaddrinfo(info); }
};

DnsResult<std::vector<Mx>> read_mx(DnsBytes reply) {
  ares_mx_reply* first = nullptr;
  const int status = ares_parse_mx_reply(reply.data(), static_cast<int>(reply.size()), &first);
  const std::unique_ptr<ares_mx_reply, AresFree> owner(first);
  if (status != ARES_SUCCESS) return dns_failure(status);
  std::vector<Mx> all;
  for (const auto* mx = first; mx != nullptr; mx = mx->next)
    all.push_back({.preference = mx->priority, .host = mx->host == std::string_view(".") ? "" : mx->host});
  if (all.empty()) return dns_failure(ARES_ENODATA);
  std::ranges::sort(all, {}, &Mx::preference);
  return all;
}

DnsResult<std::vector<std::string>> read_txt(DnsBytes reply) {
  ares_txt_ext* first = nullptr;
  const int status = ares_parse_txt_reply_ext(reply.data(), static_cast<int>(reply.size()), &first);
  const std::unique_ptr<ares_txt_ext, AresFree> owner(first);
  if (status != ARES_SUCCESS) return dns_failure(status);
  std::vector<std::string> all;
  for (const auto* txt = first; txt != nullptr; txt = txt->next) {
    if (txt->record_start != 0 || all.empty()) all.emplace_back();
    all.back().append(reinterpret_cast<const char*>(txt->txt), txt->length);
  }
  if (all.empty()) return dns_failure(ARES_ENODATA);
  return all;
}

asio::ip::address address_of(const sockaddr* address) {
  if (address->sa_family == AF_INET)
    return asio::ip::address_v4(ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr));
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(address);
  asio::ip::address_v6::bytes_type bytes;
  std::memcpy(bytes.data(), &v6->sin6_addr, bytes.size());
  return asio::ip::address_v6(bytes, v6->sin6_scope_id);
}

Looked<std::vector<asio::ip::address>> read_addresses(const ares_addrinfo* info) {
  std::vector<asio::ip::address> all;
  int ttl = INT_MAX;
  for (const auto* node = info->nodes; node != nullptr; node = node->ai_next) {
    all.push_back(address_of(node->ai_addr));
    ttl = std::min(ttl, node->ai_ttl);
  }
  for (const auto* alias = info->cnames; alias != nullptr; alias = alias->next)
    ttl = std::min(ttl, alias->ttl);
  if (all.empty()) return {.result = dns_failure(ARES_ENODATA)};
  return {.result = std::move(all), .lifetime = seconds(std::max(ttl, 0))};
}

// A question that c-ares was asked. It always answers, at the latest when its channel is destroyed, and is
// not to find that those who asked have gone: all hold it.
template <class T>
struct Pending {
  explicit Pending(const DnsStrand& strand) : answered(strand, DnsClock::time_point::max()) {}
  void finish(Looked<T> with) {
    looked = std::move(with);
    answered.cancel();
  }

  std::optional<Looked<T>> looked;
  asio::steady_timer answered;
  std::function<DnsResult<T>(DnsBytes)> read = {};
};

template <class T>
using PendingRef = std::shared_ptr<Pending<T>>;

// What was answered lately, and what is being asked. Of one strand.
template <class T>
class DnsCache {
 public:
  const DnsResult<T>* find(std::string_view name) const {
    const auto found = entries_.find(name);
    return found == entries_.end() || found->second.until <= DnsClock::now() ? nullptr
                                                                             : &found->second.result;
  }
  void keep(std::string name, const Looked<T>& looked) {
    if (looked.lifetime <= seconds(0)) return;
    const auto now = DnsClock::now();
    if (entries_.size() >= kMost)
      std::erase_if(entries_, [&](const auto& e) { return e.second.until <= now; });
    if (entries_.size() >= kMost) entries_.clear();
    entries_.insert_or_assign(std::move(name),
                              Entry{looked.result, now + std::min(looked.lifetime, kLongest)});
  }

  // The same question, where it was asked and is not answered yet: many who send to one domain ask once.
  PendingRef<T> asked(const std::string& name) const {
    const auto found = open_.find(name);
    const auto pending = found == open_.end() ? nullptr : found->second.lock();
    return pending && !pending->looked ? pending : nullptr;
  }
  void ask(const std::string& name, const PendingRef<T>& pending) {
    if (open_.size() >= kMost) std::erase_if(open_, [](const auto& e) { return e.second.expired(); });
    open_.insert_or_assign(name, pending);
  }
  void answered(const std::string& name) {
    if (!asked(name)) open_.erase(name);
  }

 private:
  static constexpr size_t kMost = 10'000;
  static constexpr seconds kLongest{3'600};
  struct Entry {
    DnsResult<T> result;
    DnsClock::time_point until;
  };
  std::unordered_map<std::string, Entry, KeyedHash, std::equal_to<>> entries_;
  // c-ares holds them.
  std::unordered_map<std::string, std::weak_ptr<Pending<T>>, KeyedHash, std::equal_to<>> open_;
};

template <class T>
void on_reply(void* argument, int status, int /*timeouts*/, unsigned char* bytes, int length) {
  const std::unique_ptr<PendingRef<T>> pending(static_cast<PendingRef<T>*>(argument));
  const DnsBytes reply(bytes, bytes == nullptr ? 0 : static_cast<size_t>(length));
  Looked<T> looked{.result = status == ARES_SUCCESS ? (*pending)->read(reply) : dns_failure(status)};
  if (looked.result || looked.result.error().kind == DnsError::Kind::not_found)
    looked.lifetime = lifetime_of(reply);
  (*pending)->finish(std::move(looked));
}

void on_addresses(void* argument, int status, int /*timeouts*/, ares_addrinfo* info) {
  using Addresses = std::vector<asio::ip::address>;
  const std::unique_ptr<PendingRef<Addresses>> pending(static_cast<PendingRef<Addresses>*>(argument));
  const std::unique_ptr<ares_addrinfo, AresFree> owner(info);
  if (status != ARES_SUCCESS)
    (*pending)->finish({.result = dns_failure(status)});
  else
    (*pending)->finish(read_addresses(info));
}

void start_ares() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (ares_library_init(ARES_LIB_INIT_ALL) != ARES_SUCCESS)
      throw std::runtime_error("c-ares does not start");
  });
}

}  // namespace

// All of it on the strand. c-ares says which of its sockets it wants to know about; it is told when one is
// ready, and when the time has come that it asked for.
class Dns::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(const asio::any_io_executor& executor, const Options& options) : strand_(executor), timer_(strand_) {
    start_ares();
    ares_options settings{};
    settings.flags = ARES_FLAG_NOSEARCH;
    settings.timeout = static_cast<int>(options.timeout.count());
    settings.tries = options.tries;
    settings.sock_state_cb = [](void* self, int socket, int readable, int writable) {
      static_cast<Impl*>(self)->watch(socket, readable != 0, writable != 0);
    };
    settings.sock_state_cb_data = this;
    if (const int status =
            ares_init_options(&channel_, &settings,
                              ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_SOCK_STATE_CB);
        status != ARES_SUCCESS)
      throw std::runtime_error(fmt::format("the resolver does not start: {}", ares_strerror(status)));
    const auto servers = fmt::format("{}", fmt::join(options.servers, ","));
    if (servers.empty() || ares_set_servers_ports_csv(channel_, servers.c_str()) == ARES_SUCCESS) return;
    ares_destroy(channel_);
    throw std::runtime_error(fmt::format("'{}' are no addresses of DNS servers like 127.0.0.1:53", servers));
  }
  ~Impl() { stop(); }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  const DnsStrand& strand() const { return strand_; }

  // Answers whatever is still asked.
  void stop() {
    if (channel_ == nullptr) return;
    ares_destroy(std::exchange(channel_, nullptr));
    timer_.cancel();
  }

  template <class T>
  asio::awaitable<DnsResult<T>> records(std::string name, ns_type type, DnsCache<T> Impl::* cache,
                                        DnsResult<T> (*read)(DnsBytes)) {
    return look_up<T>(std::move(name), cache,
                      [this, type, read](const std::string& text, PendingRef<T> pending) {
                        pending->read = read;
                        ares_query(channel_, text.c_str(), ns_c_in, type, on_reply<T>,
                                   new PendingRef<T>(std::move(pending)));
                      });
  }

  asio::awaitable<DnsResult<std::vector<asio::ip::address>>> addresses(std::string host) {
    using Addresses = std::vector<asio::ip::address>;
    boost::system::error_code error;
    if (const auto literal = asio::ip::make_address(host, error); !error) co_return Addresses{literal};
    co_return co_await look_up<Addresses>(
        std::move(host), &Impl::addresses_, [this](const std::string& text, PendingRef<Addresses> pending) {
          ares_addrinfo_hints hints{};
          hints.ai_family = AF_UNSPEC;
          hints.ai_socktype = SOCK_STREAM;  // else each address comes once for every kind
          ares_getaddrinfo(channel_, text.c_str(), nullptr, &hints, on_addresses,
                           new PendingRef<Addresses>(std::move(pending)));
        });
  }

  DnsCache<std::vector<Mx>> mx_;
  DnsCache<std::vector<std::string>> txt_;

 private:
  struct Watch {
    Watch(const DnsStrand& strand, int socket) : descriptor(strand, socket) {}
    asio::posix::stream_descriptor descriptor;  // c-ares's socket, which closes it
    bool wants_read = false;
    bool wants_write = false;
    bool reading = false;
    bool writing = false;
    bool gone = false;
  };

  template <class T, class Ask>
  asio::awaitable<DnsResult<T>> look_up(std::string name, DnsCache<T> Impl::* cache, Ask ask) {
    name = lower(name);
    if (name.ends_with('.')) name.pop_back();
    if (!is_host_name(name)) co_return dns_failure(ARES_EBADNAME);
    if (const auto* known = (this->*cache).find(name)) co_return *known;
    if (channel_ == nullptr) co_return dns_failure(ARES_EDESTRUCTION);
    auto pending = (this->*cache).asked(name);
    if (!pending) {
      pending = std::make_shared<Pending<T>>(strand_);
      (this->*cache).ask(name, pending);
      ask(name, pending);
      set_timer();
    }
    if (!pending->looked) co_await pending->answered.async_wait(kByValue);
    if (!pending->looked) co_return dns_failure(ARES_EDESTRUCTION);  // abandoned
    (this->*cache).answered(name);
    (this->*cache).keep(std::move(name), *pending->looked);
    co_return pending->looked->result;
  }

  void watch(int socket, bool read, bool write) {
    auto& watch = watches_[socket];
    if (!read && !write) {
      if (watch) {
        watch->gone = true;
        watch->descriptor.release();
      }
      watches_.erase(socket);
      return;
    }
    if (!watch) watch = std::make_shared<Watch>(strand_, socket);
    watch->wants_read = read;
    watch->wants_write = write;
    wait_for(watch);
  }

  void wait_for(const std::shared_ptr<Watch>& watch) {
    const auto wait = [&](bool wanted, bool& waiting, bool write) {
      if (!wanted || std::exchange(waiting, true)) return;
      watch->descriptor.async_wait(
          write ? asio::posix::descriptor_base::wait_write : asio::posix::descriptor_base::wait_read,
          [self = shared_from_this(), watch, write](boost::system::error_code) {
            self->is_ready(watch, write);
          });
    };
    wait(watch->wants_read, watch->reading, false);
    wait(watch->wants_write, watch->writing, true);
  }

  void is_ready(const std::shared_ptr<Watch>& watch, bool write) {
    (write ? watch->writing : watch->reading) = false;
    if (watch->gone || channel_ == nullptr) return;
    const int socket = watch->descriptor.native_handle();
    ares_process_fd(channel_, write ? ARES_SOCKET_BAD : socket, write ? socket : ARES_SOCKET_BAD);
    if (!watch->gone) wait_for(watch);
    set_timer();
  }

  // For when c-ares wants to see whether an answer is late.
  void set_timer() {
    timeval room{};
    const auto* left = channel_ == nullptr ? nullptr : ares_timeout(channel_, nullptr, &room);
    if (left == nullptr) {
      timer_.cancel();
      return;
    }
    timer_.expires_after(seconds(left->tv_sec) + std::chrono::microseconds(left->tv_usec));
    timer_.async_wait([self = shared_from_this()](boost::system::error_code aborted) {
      if (aborted || self->channel_ == nullptr) return;
      ares_process_fd(self->channel_, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
      self->set_timer();
    });
  }

  DnsStrand strand_;
  asio::steady_timer timer_;
  DnsCache<std::vector<asio::ip::address>> addresses_;
  std::map<int, std::shared_ptr<Watch>> watches_;
  ares_channel channel_ = nullptr;
};

Dns::Dns(const asio::any_io_executor& executor, const Options& options)
    : impl_(std::make_shared<Impl>(executor, options)) {}

Dns::~Dns() {
  asio::post(impl_->strand(), [impl = impl_] { impl->stop(); });
}

asio::awaitable<DnsResult<std::vector<Mx>>> Dns::mx(std::string domain) {
  const auto impl = impl_;
  co_return co_await asio::co_spawn(
      impl->strand(), impl->records(std::move(domain), ns_t_mx, &Impl::mx_, read_mx), asio::use_awaitable);
}

asio::awaitable<DnsResult<std::vector<asio::ip::address>>> Dns::addresses(std::string host) {
  const auto impl = impl_;
  co_return co_await asio::co_spawn(impl->strand(), impl->addresses(std::move(host)), asio::use_awaitable);
}

asio::awaitable<DnsResult<std::vector<std::string>>> Dns::txt(std::string name) {
  const auto impl = impl_;
  co_return co_await asio::co_spawn(
      impl->strand(), impl->records(std::move(name), ns_t_txt, &Impl::txt_, read_txt), asio::use_awaitable);
}

}  // namespace tabella::net
