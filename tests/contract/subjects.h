// What the contract runs on.
#pragma once

#include <memory>

#include "contract/contract.h"

namespace tabella::contract {

std::unique_ptr<Subject> make_engine();
std::unique_ptr<Subject> make_remote_to_tabella();
std::unique_ptr<Subject> make_remote_to_dynamodb_local();

}  // namespace tabella::contract
