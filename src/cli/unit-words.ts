import { ExitCode, PodwrightError } from "../base/errors.ts";

/**
 * Escapes a word of `ExecStart=`, so that the program receives it unchanged (systemd.service(5), "Command Lines";
 * systemd.syntax(7), "Quoting").
 */
export function unitWord(text: string): string {
  const literal = text.replaceAll("%", "%%").replaceAll("$", "$$$$");
  if (/^[\w@%+=:,./$-]+$/u.test(literal)) return literal;
  return `"${literal.replaceAll(/["\\]/gu, String.raw`\$&`).replaceAll(/\p{Cc}/gu, escaped)}"`;
}

/** C escapes of a character's bytes in UTF-8. */
function escaped(character: string): string {
  return [...Buffer.from(character)].map((byte) => String.raw`\x${byte.toString(16).padStart(2, "0")}`).join("");
}

/**
 * The program of `ExecStart=`.
 * @param path absolute
 * @throws PodwrightError (environment) for a path that systemd's versions parse differently
 */
export function unitProgram(path: string): string {
  if (!/["'\\$%]|\p{Cc}/u.test(path)) return unitWord(path);
  throw new PodwrightError(ExitCode.environment, `systemd cannot start ${JSON.stringify(path)}`, {
    remedy: "install podwright in a directory whose path has no quotes, backslashes, dollar or percent signs",
  });
}
