// A bank: accounts that are made of what happened to them.
//   bank PLACE COMMAND…   runs one command; without one, those that it reads, a line each
// PLACE is a folder, or the address of a Tabella server (http://localhost:8000) that several of these share.
#include <iostream>
#include <sstream>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "library/entities.h"
#include "library/instance.h"

namespace {

struct AccountEvent {
  std::string type;  // opened, deposited, withdrawn
  int64_t amount = 0;
};

struct Account {
  bool open = false;
  int64_t balance = 0;
};

Account apply(Account account, const AccountEvent& event) {
  account.open = true;
  account.balance += event.type == "withdrawn" ? -event.amount : event.amount;
  return account;
}

tabella::journal::NewEvent encode(const AccountEvent& event) {
  return {.payload = fmt::format(R"({{"amount":{}}})", event.amount), .is_json = true, .type = event.type};
}

tabella::Checked<AccountEvent> decode(const tabella::journal::Event& event) {
  tabella::JsonDocument document;
  const auto json = document.parse(event.payload());
  const auto amount = json && json->is_object() ? json->find("amount") : std::nullopt;
  if (!amount || !amount->is_number()) return tabella::invalid("it has no amount");
  return AccountEvent{std::string(event.type()), amount->integer()};
}

std::string save(const Account& account) { return fmt::format("{} {}", account.open, account.balance); }

tabella::Checked<Account> load(std::string_view text) {
  Account account;
  std::istringstream in{std::string(text)};
  in >> std::boolalpha >> account.open >> account.balance;
  return in ? tabella::Checked<Account>(account) : tabella::invalid("it is no account");
}

// The commands: what they come to, by what the account is.
using Decision = tabella::Decision<AccountEvent>;
using Command = std::function<Decision(const Account&)>;

Decision open_account(const Account& account) {
  if (account.open) return tabella::refuse("there is such an account already");
  return std::vector{AccountEvent{"opened"}};
}

Command deposit(int64_t amount) {
  return [amount](const Account& account) -> Decision {
    if (!account.open) return tabella::refuse("there is no such account");
    return std::vector{AccountEvent{"deposited", amount}};
  };
}

Command withdraw(int64_t amount) {
  return [amount](const Account& account) -> Decision {
    if (!account.open) return tabella::refuse("there is no such account");
    if (account.balance < amount) return tabella::refuse(fmt::format("there is only {}", account.balance));
    return std::vector{AccountEvent{"withdrawn", amount}};
  };
}

class Bank {
 public:
  explicit Bank(const std::string& place) : tabella_(tabella::open(place)) {}

  // What there is to say about it.
  std::string run(std::istream& words) {
    std::string command, name, other, id;
    int64_t amount = 0;
    words >> command >> name;
    if (command == "open") return execute(name, open_account);
    if (command == "statement") return statement(name);
    if (command == "transfer") words >> other;
    if (!(words >> amount) || amount <= 0) return "open, deposit, withdraw, transfer or statement?";
    words >> id;  // given again, the command is not done again
    if (command == "deposit") return execute(name, deposit(amount), id);
    if (command == "withdraw") return execute(name, withdraw(amount), id);
    // Interrupted between the two and run again with its id, a transfer goes on where it was.
    const auto taken = execute(name, withdraw(amount), id.empty() ? id : id + "-out");
    return taken.starts_with("done") ? execute(other, deposit(amount), id.empty() ? id : id + "-in") : taken;
  }

 private:
  std::string execute(const std::string& name, Command command, const std::string& id = {}) {
    const auto done = tabella_->run(accounts_.execute(name, std::move(command), id));
    if (!done) return fmt::format("not done: {}", done.error().message);
    return fmt::format("done{}: {} is at event {}", done->repeated ? " before" : "", name, done->version);
  }

  std::string statement(const std::string& name) {
    std::string text;
    Account account;
    auto replay = tabella_->journal().replay({"bank", name}, {});
    while (true) {
      const auto events = tabella_->run(replay.next());
      if (!events) return events.error().message;
      if (events->empty()) return fmt::format("{}{} has {}", text, name, account.balance);
      for (const auto& event : *events) {
        const auto known = decode(event);
        if (!known) return known.error().message;
        account = apply(account, *known);
        text += fmt::format("{:>6}  {:%F %T}  {:<9}  {:>8}\n", event.number(),
                            event.time().value_or(tabella::TimePoint{}), event.type(), account.balance);
      }
    }
  }

  const std::unique_ptr<tabella::Instance> tabella_;
  tabella::Entities<Account, AccountEvent> accounts_{tabella_->journals(),
                                                     "bank",
                                                     {.apply = apply,
                                                      .encode = encode,
                                                      .decode = decode,
                                                      .snapshot_every = 100,
                                                      .save = save,
                                                      .load = load}};
};

}  // namespace

int main(int count, char** arguments) try {
  if (count < 2) throw std::runtime_error("usage: bank PLACE [COMMAND…]");
  Bank bank(arguments[1]);
  std::string line;
  for (int i = 2; i < count; ++i) line += std::string(arguments[i]) + " ";
  std::istringstream given(line);
  for (std::istream& lines = count > 2 ? given : std::cin; std::getline(lines, line);) {
    std::istringstream words(line);
    std::cout << bank.run(words) << std::endl;
  }
} catch (const std::exception& error) {
  std::cerr << "bank: " << error.what() << "\n";
  return 1;
}
