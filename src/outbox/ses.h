// The Amazon SES v2 door: what an AWS SDK's sesv2 client calls, under /v2/email. What is not here is not
// served: there are no identities to verify (whoever may send, may send from any address), no contact lists,
// dedicated addresses or reports.
//
// Where it is not SES:
// - FeedbackForwardingEmailAddress is the sender of the envelope, because that is where bounces go.
// - A template that cannot be filled is refused at once, not after it was accepted.
// - Tags of emails and the name of the configuration set become labels of the email; tags of templates and of
//   configuration sets are not kept.
// - The suppression list may hold addresses with the reason MANUAL, which /outbox gives.
#pragma once

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "base/log.h"
#include "house/routes.h"
#include "net/budget.h"
#include "net/call.h"
#include "outbox/composer.h"
#include "outbox/configuration_sets.h"
#include "outbox/service.h"
#include "outbox/ses_answer.h"
#include "outbox/ses_requests.h"
#include "store/long_work.h"

namespace tabella::outbox {

// Thread-safe; borrows what it is given.
class SesApi {
 public:
  // `max_size`: of a message; SES's own limit holds as well.
  SesApi(Outbox& outbox, Composer& composer, store::LongWork long_work, size_t max_size = kSesMostMessage)
      : outbox_(outbox),
        composer_(composer),
        long_work_(std::move(long_work)),
        max_size_(std::min(max_size, kSesMostMessage)),
        sets_(outbox.store(), outbox.clock(), outbox.options().messages) {}

  using Call = net::Call;
  using Routes = house::Routes<SesApi>;
  static void add_routes(Routes routes);

 private:
  using Answer = boost::asio::awaitable<SesAnswer>;
  static constexpr size_t kCopies = 3;  // as JSON, decoded, and as the message that is made of it
  static void add_send_routes(Routes& routes);
  static void add_template_routes(Routes& routes);
  static void add_suppression_routes(Routes& routes);
  static void add_account_routes(Routes& routes);

  // ses_send.cpp
  Answer send_email(Call& call);
  Answer send_bulk_email(Call& call);
  Answer send(SesEmail email);  // the id
  // Why none of a bulk can be sent.
  struct BulkFailure {
    std::string_view status;
    std::string message;
  };
  boost::asio::awaitable<SesResult<std::optional<BulkFailure>>> prepare_bulk(SesEmail& all);
  Answer send_entry(Call& call, const SesEmail& all, const Checked<SesBulkEntry>& entry);  // the id
  boost::asio::awaitable<SesResult<void>> check_configuration_set(const std::string& name);
  boost::asio::awaitable<SesResult<void>> fill(Call& call, SesEmail& email);

  // ses_templates.cpp
  Answer create_email_template(Call& call);
  Answer get_email_template(Call& call);
  Answer update_email_template(Call& call);
  Answer delete_email_template(Call& call);
  Answer list_email_templates(Call& call);
  Answer test_render_email_template(Call& call);

  // ses_suppression.cpp
  Answer put_suppressed_destination(Call& call);
  Answer get_suppressed_destination(Call& call);
  Answer delete_suppressed_destination(Call& call);
  Answer list_suppressed_destinations(Call& call);

  // ses_account.cpp
  Answer get_account(Call& call);
  Answer create_configuration_set(Call& call);
  Answer get_configuration_set(Call& call);
  Answer delete_configuration_set(Call& call);
  Answer list_configuration_sets(Call& call);

  // The handler of a route: an operation, and its answer as SES gives it.
  template <Answer (SesApi::*Operation)(Call&)>
  boost::asio::awaitable<void> run(Call& call) {
    SesAnswer answer = std::unexpected(SesError("InternalFailure", 500, "something went wrong; see the log"));
    try {
      answer = co_await (this->*Operation)(call);
    } catch (const std::exception& error) {
      log::error("{} {}: {}", call.request.method, call.request.target, error.what());
    }
    answer_ses(call.response, std::move(answer));
  }

  // The body of a request. Large ones are read beside the threads that serve, once there is memory for them.
  template <class T>
  boost::asio::awaitable<SesResult<T>> read(Call& call, Checked<T> (*parse)(JsonValue)) {
    constexpr size_t kLarge = 64 * 1024;
    const auto body = call.request.body;
    const auto work = [body, parse]() -> Checked<T> {
      JsonDocument document;
      const auto value = document.parse(body);
      if (!value) return invalid("The request must be a JSON object.");
      return parse(*value);
    };
    if (body.size() <= kLarge) co_return work();
    if (call.request.unpacked && !call.request.unpacked->resize(kCopies * body.size()))
      co_return ses_too_busy();
    co_return co_await long_work_.run(work);
  }

  // Counts what was made of a request, which may be far longer, where it is made: so what is not counted yet
  // is bounded by the number of threads.
  static SesResult<void> count_made(const Call& call, size_t bytes) {
    auto* memory = call.request.unpacked;
    if (memory && !memory->resize(memory->size() + kCopies * bytes)) return ses_too_busy();
    return {};
  }

  // PageSize, from 1 to `most`, which it is if it is not there.
  static SesResult<size_t> page_size(const Call& call, size_t most);

  Outbox& outbox_;
  Composer& composer_;
  const store::LongWork long_work_;
  const size_t max_size_;
  ConfigurationSets sets_;
};

}  // namespace tabella::outbox
