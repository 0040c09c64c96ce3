#include "webhook/call.h"

#include <fmt/format.h>

#include "webhook/signature.h"

namespace tabella::webhook {

boost::asio::awaitable<std::optional<Failure>> call(net::Outbound& outbound, net::OutboundRequest request,
                                                    std::string secret, std::string id, TimePoint now) {
  constexpr int kGone = 410;
  request.method = "POST";
  request.headers.emplace_back("Content-Type", "application/json");
  add_headers(request, secret, id, now);
  const auto reply = co_await outbound.send(std::move(request));
  if (!reply) co_return Failure{.final = reply.error().refused, .why = reply.error().message};
  if (reply->status / 100 == 2) co_return std::nullopt;
  co_return Failure{.final = reply->status == kGone, .why = fmt::format("it answered {}", reply->status)};
}

}  // namespace tabella::webhook
