#include "net/transport.h"

#include <sys/socket.h>
#include <optional>

#include <fmt/format.h>
#include <boost/asio/ssl.hpp>
#include <boost/asio/write.hpp>

#include "net/by_value.h"

namespace tabella::net {

namespace asio = boost::asio;
using asio::awaitable;
using asio::ip::tcp;

namespace {

void refuse_old_versions(asio::ssl::context& context) {
  context.set_options(asio::ssl::context::no_tlsv1 | asio::ssl::context::no_tlsv1_1 |
                      asio::ssl::context::no_sslv3);
}
}  // namespace

struct TlsTrust::Impl {
  asio::ssl::context context{asio::ssl::context::tls_client};
  bool anyone = false;
};

TlsTrust::TlsTrust(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {
  refuse_old_versions(impl_->context);
}
TlsTrust::TlsTrust(const std::string& ca_file) : TlsTrust(std::make_unique<Impl>()) {
  auto& context = impl_->context;
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
TlsTrust TlsTrust::anyone() {
  TlsTrust trust(std::make_unique<Impl>());
  trust.impl_->context.set_verify_mode(asio::ssl::verify_none);
  trust.impl_->anyone = true;
  return trust;
}
TlsTrust::~TlsTrust() = default;
TlsTrust::TlsTrust(TlsTrust&&) noexcept = default;

struct TlsIdentity::Impl {
  asio::ssl::context context{asio::ssl::context::tls_server};
};

TlsIdentity::TlsIdentity(const TlsFiles& files) : impl_(std::make_unique<Impl>()) {
  try {
    refuse_old_versions(impl_->context);
    impl_->context.use_certificate_chain_file(files.certificate);
    impl_->context.use_private_key_file(files.key, asio::ssl::context::pem);
  } catch (const boost::system::system_error& error) {
    throw std::runtime_error(fmt::format("the TLS certificate {} or its key {} cannot be used: {}",
                                         files.certificate, files.key, error.code().message()));
  }
}
TlsIdentity::~TlsIdentity() = default;

struct Transport::Impl {
  explicit Impl(tcp::socket s) : socket(std::move(s)) {}

  tcp::socket socket;
  std::optional<asio::ssl::stream<tcp::socket&>> tls;
};

Transport::Transport(const asio::any_io_executor& executor)
    : impl_(std::make_unique<Impl>(tcp::socket(executor))) {}
Transport::Transport(tcp::socket accepted) : impl_(std::make_unique<Impl>(std::move(accepted))) {}
Transport::~Transport() = default;

awaitable<std::tuple<Transport::Error>> Transport::connect(const tcp::endpoint& endpoint) {
  Error ignored;
  impl_->tls.reset();
  impl_->socket.close(ignored);
  impl_->socket.open(endpoint.protocol(), ignored);
  impl_->socket.set_option(tcp::no_delay(true), ignored);
  return impl_->socket.async_connect(endpoint, kByValue);
}

awaitable<Transport::Error> Transport::secure(const TlsTrust& trust, const std::string& host) {
  auto& tls = impl_->tls.emplace(impl_->socket, trust.impl_->context);
  if (!trust.impl_->anyone) tls.set_verify_callback(asio::ssl::host_name_verification(host));
  Error is_name;
  asio::ip::make_address(host, is_name);
  // Addresses have no place in the server name indication.
  if (is_name && !SSL_set_tlsext_host_name(tls.native_handle(), host.c_str()))
    co_return asio::error::invalid_argument;
  const auto [error] = co_await tls.async_handshake(asio::ssl::stream_base::client, kByValue);
  co_return error;
}

awaitable<Transport::Error> Transport::secure(const TlsIdentity& identity) {
  auto& tls = impl_->tls.emplace(impl_->socket, identity.impl_->context);
  const auto [error] = co_await tls.async_handshake(asio::ssl::stream_base::server, kByValue);
  co_return error;
}

bool Transport::is_secure() const { return impl_->tls.has_value(); }

awaitable<Transport::Transferred> Transport::write(std::array<asio::const_buffer, 2> buffers) {
  return impl_->tls ? asio::async_write(*impl_->tls, buffers, kByValue)
                    : asio::async_write(impl_->socket, buffers, kByValue);
}

awaitable<Transport::Transferred> Transport::write_some(std::array<asio::const_buffer, 2> buffers) {
  return impl_->tls ? impl_->tls->async_write_some(buffers, kByValue)
                    : impl_->socket.async_write_some(buffers, kByValue);
}

awaitable<Transport::Transferred> Transport::read_some(asio::mutable_buffer room) {
  return impl_->tls ? impl_->tls->async_read_some(room, kByValue)
                    : impl_->socket.async_read_some(room, kByValue);
}

void Transport::finish_sending() {
  Error ignored;
  if (!impl_->tls) impl_->socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void Transport::close() {
  Error ignored;
  impl_->socket.close(ignored);
}

bool Transport::is_quiet() {
  char byte = 0;
  return ::recv(impl_->socket.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::string Transport::peer() const {
  Error error;
  const auto endpoint = impl_->socket.remote_endpoint(error);
  return error ? "" : endpoint.address().to_string();
}

}  // namespace tabella::net
