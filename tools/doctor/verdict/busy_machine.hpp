// SPDX-License-Identifier: MIT
// Whether a verdict stands though other processes had a part of the CPUs. The limits allow for the delays that they caused.
// A verdict that the limits do not confirm is not given.
#pragma once
#include "tools/doctor/facts/loss.hpp"
#include "tools/doctor/verdict/verdict.hpp"

namespace freehold::doctor {

[[nodiscard]] bool stands_on_busy_machine(const Losses& losses, const Verdict& verdict);

// What the verdict rests on. Pre: it has a cause, and two settings were compared.
[[nodiscard]] Basis basis_of(const Losses& losses, const Verdict& verdict);

}  // namespace freehold::doctor
