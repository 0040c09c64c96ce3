// Rate limits of methods. What is beyond one is not lost: it is gathered, and comes as one message when the
// window is over. Who answers that answers all that came with it.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>

#include "manhunt/contacts.h"
#include "manhunt/domains.h"
#include "manhunt/model.h"
#include "manhunt/sender.h"
#include "schedule/schedule.h"

namespace tabella::manhunt {

// Thread-safe. Must outlive the schedule's run().
class Bundles {
 public:
  struct Parts {
    store::Store& store;
    const Clock& clock;
    schedule::Schedule& schedule;
    Domains& domains;
    Contacts& contacts;
    Sender& sender;
  };
  Bundles(Parts parts, std::string table);

  // Where an attempt comes that is beyond the limit.
  struct Place {
    std::string bundle;
    TimePoint due;
  };
  // Counts an attempt, once; `again`: it may have been counted. Nothing: it is within the limit, and goes
  // alone.
  store::Async<std::optional<Place>> count(const Method& method, const Attempt& attempt, bool again);
  // How many of methods' attempts were counted in their windows of now, by the methods' ids.
  store::Async<std::map<std::string, int64_t>> used(std::span<const Method> methods);
  // Puts it into its bundle, in the transaction that writes it down as bundled.
  store::TransactWrite join_write(const Attempt& attempt) const;
  // Sees to it that the bundle is sent.
  store::Async<void> expect(const Attempt& attempt);

 private:
  struct Counted {
    int64_t window = 0;
    int64_t number = 0;  // the first of it is 1
    TimePoint due;       // when the bundle comes of what is beyond the limit
  };
  store::Async<std::optional<Counted>> counted_before(const Method& method, const Attempt& attempt);
  store::Async<Counted> count_now(const Method& method, const Attempt& attempt);

  boost::asio::awaitable<void> fire(const schedule::Firing& firing);
  store::Async<void> handle(const schedule::Firing& firing);
  // When the bundle is to be looked at again.
  struct Later {
    std::chrono::milliseconds wait{0};
    std::vector<std::string> quiet = {};  // searches none of which is urgent: that is what it waits for
  };
  store::Async<std::optional<Later>> send(const std::string& domain, const std::string& contact,
                                          const std::string& bundle);
  store::Async<bool> has_urgent(const std::vector<std::string>& searches);
  struct Gathered;
  struct Both;
  store::Async<Both> gather(const std::string& bundle);
  store::Async<std::optional<Later>> send_together(Gathered& gathered, const Contact& person,
                                                   const std::string& domain, const std::string& bundle);
  store::Async<void> reckon_anew(const Gathered& gathered);
  store::Async<size_t> begin(std::span<Attempt> attempts);

  const Parts parts_;
  const std::string table_;
};

}  // namespace tabella::manhunt
