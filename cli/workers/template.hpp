// SPDX-License-Identifier: MIT
// Fills an argument into a command, as xargs and GNU parallel do:
//
//   {}   the argument               {/}   without its folder         {#}   the job's number, from 1
//   {.}  without its last ".xyz"    {//}  its folder                 {/.}  without either
//
// Without any of these the argument is added at the end. Everything that is filled in is quoted for the shell.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace freehold::cli::workers {

[[nodiscard]] std::string fill_template(std::string_view command, std::string_view argument, std::uint64_t number);
// For /bin/sh: one word, whatever is in it.
[[nodiscard]] std::string quoted(std::string_view text);

}  // namespace freehold::cli::workers
