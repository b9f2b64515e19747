import { ExitCode, PodwrightError } from "../base/errors.ts";

/**
 * A word of `ExecStart=` that the program gets as it is: no specifier, no variable, no end of the word or line in it
 * (systemd.service(5), "Command Lines"; systemd.syntax(7), "Quoting").
 */
export function unitWord(text: string): string {
  const literal = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[\w@%+=:,./$-]+$/u.test(literal)) return literal;
  return `"${literal.replaceAll(/["\\]/gu, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escaped)}"`;
}

/** The bytes of a character in UTF-8, as C escapes. */
function escaped(character: string): string {
  return [...Buffer.from(character)].map((byte) => String.raw`\x${byte.toString(16).padStart(2, "0")}`).join("");
}

/**
 * The first word of `ExecStart=`.
 * @param path absolute
 * @throws PodwrightError (environment) for a path that versions of systemd read differently
 */
export function unitProgram(path: string): string {
  if (!/["'\\$%]|\p{Cc}/u.test(path)) return unitWord(path);
  throw new PodwrightError(ExitCode.environment, `systemd cannot start ${JSON.stringify(path)}`, {
    remedy: "install podwright in a directory whose path has no quotes, backslashes, dollar or percent signs",
  });
}
