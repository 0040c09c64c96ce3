// What a message is called, and which partition of the table it is in.
//
// An id is the time of creation in nanoseconds, '|', and random@host: ids sort by time, and tell their
// partition. In URLs, and wherever ids are given out that will be put into one, '~' stands for the '|', which
// java.net.URI and Ruby's URI refuse.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tabella::mail {

// How much time the messages of one partition span.
enum class Granularity { day, half_day, hour };
inline constexpr Granularity kGranularities[] = {Granularity::day, Granularity::half_day, Granularity::hour};

using Nanoseconds = int64_t;  // since 1970
inline constexpr Nanoseconds kSecond = 1'000'000'000;

std::string make_id(Nanoseconds created, const std::string& hostname);
// The beginning that all ids of that moment share.
std::string id_prefix(Nanoseconds created);
// When the message was created; nothing if `id` is no such id.
std::optional<Nanoseconds> created_of(std::string_view id);
// How it is given out, and the id that something given out stands for; an id stands for itself.
std::string url_spelling(std::string_view id);
std::string id_of_spelling(std::string_view spelled);
// random@host: what MailHog calls the message's id.
std::string_view short_id(std::string_view id);

// "2019-07-31", "2019-07-31am", "2019-07-31T14": in UTC.
std::string partition_of(Nanoseconds created, Granularity granularity);
// The partitions from the one of `from` to the one of `to`, oldest first.
std::vector<std::string> partitions_between(Nanoseconds from, Nanoseconds to, Granularity granularity);

// 2019-07-31T11:22:56.34566642Z, without trailing zeros, as Go has it.
std::string time_text(Nanoseconds created);
// "Wed, 31 Jul 2019 11:22:56 +0000"
std::string mail_date(Nanoseconds created);

}  // namespace tabella::mail
