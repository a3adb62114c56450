// burin doctor: what this machine has, and what a missing piece is needed for.
#include "compiler/cli/commands.h"
#include "compiler/cli/console.h"
#include "compiler/cli/doctor.h"

namespace burin {

void add_doctor_command(CLI::App& app, Action& action) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("doctor", "Show what was found (driver, assemblers, cuDNN...) and what is missing");
  command->add_flag("--json", *json, "For machines");
  command->callback([json, &action] {
    action = [json] {
      const DoctorReport report = examine();
      print_data(*json ? to_json(report) : to_text(report));
      return 0;
    };
  });
}

}  // namespace burin
