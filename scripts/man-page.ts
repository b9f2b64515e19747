/** podwright(1): the content of --help, in roff, from the program's own definition. */
import type { Command } from "commander";
import { buildProgram } from "../src/cli/program.ts";
import { Terminal } from "../src/cli/terminal.ts";

function roff(text: string): string {
  const escaped = text.replaceAll("\\", "\\e").replaceAll("-", "\\-");
  return escaped.replaceAll(/^(?=[.'])/gmu, "\\&");
}

/** The text below a command's help: examples and exit codes. */
function textAfter(command: Command): string {
  let shown = "";
  command.configureOutput({ writeOut: (text) => (shown += text) });
  command.outputHelp();
  return shown.slice(command.helpInformation().length).replaceAll(/^\n+|\s+$/gu, "");
}

/** Indented lines as they are, others as paragraphs. */
function paragraphs(text: string): string[] {
  if (text === "") return [];
  return text.split(/\n\n+/u).flatMap((block) => {
    return /^\s/u.test(block) ? [".PP", ".nf", roff(block), ".fi"] : [".PP", roff(block)];
  });
}

function commandSection(command: Command): string[] {
  const help = command.createHelp();
  const terms = [
    ...help
      .visibleArguments(command)
      .map((argument) => [help.argumentTerm(argument), help.argumentDescription(argument)]),
    ...help.visibleOptions(command).map((option) => [help.optionTerm(option), help.optionDescription(option)]),
  ];
  return [
    `.SS "${roff(help.commandUsage(command))}"`,
    roff(help.commandDescription(command) || help.subcommandDescription(command)),
    ...terms.flatMap(([term = "", description = ""]) => [".TP", `.B ${roff(term)}`, roff(description || "…")]),
    ...paragraphs(textAfter(command)),
  ];
}

/** @param version for the page's footer */
export function manPage(version: string): string {
  const silent = { write: () => true };
  const program = buildProgram(new Terminal(silent, silent, {}), () => {});
  const help = program.createHelp();
  const commands = help.visibleCommands(program).filter((command) => command.name() !== "help");
  return [
    `.TH PODWRIGHT 1 "" "podwright ${version}" "podwright"`,
    ".SH NAME",
    `podwright \\- ${roff("run Kubernetes pods on this machine, and explain everything that happens to them")}`,
    ".SH SYNOPSIS",
    ".B podwright",
    ".I command",
    roff("[options]"),
    ".SH DESCRIPTION",
    roff(program.description()),
    ...paragraphs(textAfter(program)),
    ".SH COMMANDS",
    ...commands.flatMap(commandSection),
    ".SH FILES",
    ...[
      ["/var/lib/podwright", "state: the journal, pods, and podwright's own containerd"],
      ["/etc/podwright/manifests", "what 'podwright enable' runs"],
      ["/run/podwright", "sockets and locks"],
    ].flatMap(([path = "", what = ""]) => [".TP", `.I ${roff(path)}`, roff(what)]),
    "",
  ].join("\n");
}
