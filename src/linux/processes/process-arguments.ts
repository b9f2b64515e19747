/**
 * The arguments of a process, from the text of /proc/PID/cmdline: each ends with a NUL. Where a process has set its title,
 * that is all in the place of the first one, and NULs are left of the others; its words are the arguments then. Pure.
 */
export function processArguments(commandLine: string): string[] {
  // Kernel threads and zombies have none.
  if (commandLine === "") return [];
  const words = commandLine.replace(/\0$/u, "").split("\0");
  const [title = "", ...others] = words;
  const isTitle = others.length > 0 && others.every((word) => word === "");
  return isTitle ? title.split(" ") : words;
}
