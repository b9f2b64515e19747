import { ExitCode, PodwrightError } from "../base/errors.ts";

/** OpenSSL's names by Go's tls.CurveID (IANA numbers), in Go's order of preference. */
const curves: ReadonlyMap<number, string> = new Map([
  [4588, "X25519MLKEM768"],
  [4587, "SecP256r1MLKEM768"],
  [4589, "SecP384r1MLKEM1024"],
  [29, "X25519"],
  [23, "P-256"],
  [24, "P-384"],
  [25, "P-521"],
]);
const mostId = 65_535;

/**
 * OpenSSL's names of tlsCurvePreferences, joined by colons. As in Go, their order has no effect. Undefined: OpenSSL's
 * defaults.
 * @throws PodwrightError (bad input) in upstream's words
 */
export function openSslCurves(ids: readonly number[]): string | undefined {
  for (const [index, id] of ids.entries()) {
    if (id <= 0 || id > mostId) throw bad(`curve preference ${id} is out of range (must be 1-${mostId})`);
    if (ids.indexOf(id) < index) throw bad(`duplicate curve preference ${id}`);
    if (!curves.has(id)) throw bad(`curve preference ${id} is not supported`);
  }
  if (ids.length === 0) return undefined;
  return [...curves].flatMap(([id, name]) => (ids.includes(id) ? [name] : [])).join(":");
}

function bad(problem: string): PodwrightError {
  const known = [...curves].map(([id, name]) => `${id} (${name})`).join(", ");
  return new PodwrightError(ExitCode.badInput, `tlsCurvePreferences: ${problem}`, { remedy: `supported: ${known}` });
}
