#include "app/http.h"

namespace tabella::app {

boost::asio::awaitable<void> HttpDoor::handle(const net::HttpRequest& request, net::HttpResponse& response) {
  const auto path = request.target.substr(0, request.target.find('?'));
  response.content_type = "text/plain; charset=utf-8";
  const bool known = path == "/metrics" || path == "/healthz";
  if (known && request.method != "GET" && request.method != "HEAD") {
    response.status = 405;
    response.add_header("Allow", "GET, HEAD");
    response.body = "use GET\n";
  } else if (path == "/metrics") {
    metrics::Exposition exposition;
    write_metrics_(exposition);
    response.content_type = "text/plain; version=0.0.4; charset=utf-8";
    response.body = exposition.text();
  } else if (path == "/healthz") {
    const auto ailment = co_await ailment_();
    response.status = ailment.empty() ? 200 : 503;
    response.body = ailment.empty() ? "ok\n" : ailment + "\n";
  } else {
    response.status = 404;
    response.body = "there is /metrics and /healthz\n";
  }
  co_return;
}

}  // namespace tabella::app
