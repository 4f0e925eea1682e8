#pragma once

#include <string>
#include <string_view>

namespace tensorlint {

/// Ends the process with `exit_code` after that many seconds of its time on the clock, whatever it is doing, and says
/// why on standard error. What --dump or a report has written by then stays; a file that is not finished is removed.
/// 0: no limit. `command` names what was started, in the message.
void start_time_limit(std::string_view command, double seconds, int exit_code);

/// Takes the limit back.
void stop_time_limit();

/// What is said when it is over.
std::string time_limit_message(std::string_view command);

}  // namespace tensorlint
