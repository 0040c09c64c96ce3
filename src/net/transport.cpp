#include "net/transport.h"

#include <sys/socket.h>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {
constexpr auto kByValue = asio::as_tuple(asio::use_awaitable);
}

struct TlsTrust::Impl {
  asio::ssl::context context{asio::ssl::context::tls_client};
};

TlsTrust::TlsTrust(const std::string& ca_file) : impl_(std::make_unique<Impl>()) {
  auto& context = impl_->context;
  context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                      asio::ssl::context::no_sslv3);
  context.set_verify_mode(asio::ssl::verify_peer);
  try {
    if (ca_file.empty())
      context.set_default_verify_paths();
    else
      context.load_verify_file(ca_file);
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(
        fmt::format("the certificates in {} cannot be used: {}", ca_file, error.code().message()));
  }
}
TlsTrust::~TlsTrust() = default;

struct Transport::Impl {
  std::optional<tcp::socket> plain;
  std::optional<asio::ssl::stream<tcp::socket>> tls;

  tcp::socket& socket() { return tls ? tls->next_layer() : *plain; }
};

Transport::Transport(const asio::any_io_executor& executor, const TlsTrust* trust)
    : impl_(std::make_unique<Impl>()) {
  if (trust)
    impl_->tls.emplace(tcp::socket(executor), trust->impl_->context);
  else
    impl_->plain.emplace(executor);
}
Transport::~Transport() = default;

awaitable<std::tuple<Transport::Error>> Transport::connect(const tcp::endpoint& endpoint) {
  Error ignored;
  impl_->socket().close(ignored);
  impl_->socket().open(endpoint.protocol(), ignored);
  impl_->socket().set_option(tcp::no_delay(true), ignored);
  return impl_->socket().async_connect(endpoint, kByValue);
}

awaitable<Transport::Error> Transport::secure(const std::string& host) {
  if (!impl_->tls) co_return Error();
  auto& tls = *impl_->tls;
  tls.set_verify_callback(asio::ssl::host_name_verification(host));
  Error is_name;
  asio::ip::make_address(host, is_name);
  // Addresses have no place in the server name indication.
  if (is_name && !SSL_set_tlsext_host_name(tls.native_handle(), host.c_str()))
    co_return asio::error::invalid_argument;
  const auto [error] = co_await tls.async_handshake(asio::ssl::stream_base::client, kByValue);
  co_return error;
}

awaitable<Transport::Transferred> Transport::write(std::array<asio::const_buffer, 2> buffers) {
  return impl_->tls ? asio::async_write(*impl_->tls, buffers, kByValue)
                    : asio::async_write(*impl_->plain, buffers, kByValue);
}

awaitable<Transport::Transferred> Transport::read_some(asio::mutable_buffer room) {
  return impl_->tls ? impl_->tls->async_read_some(room, kByValue)
                    : impl_->plain->async_read_some(room, kByValue);
}

void Transport::close() {
  Error ignored;
  impl_->socket().close(ignored);
}

bool Transport::is_quiet() {
  char byte = 0;
  return ::recv(impl_->socket().native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

}  // namespace tabella::net
