// For I/O whose failure is an ordinary outcome: the error comes as part of the result, nothing is thrown.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace tabella::net {

inline constexpr auto kByValue = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace tabella::net
