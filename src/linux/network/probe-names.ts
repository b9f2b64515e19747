import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { onAbort } from "../../base/abort.ts";
import { ProbeTargetError } from "../../ports/network-probes.ts";
import { parseSearchRules, searchNames } from "./search-names.ts";

const lookupTimeoutMs = 1000;
const lookupTries = 2;
const maxConfigBytes = 1 << 20;

/**
 * Resolves a probe's host: an address as it is, then /etc/hosts, then DNS, IPv4 before IPv6.
 *
 * Not getaddrinfo: it occupies a thread of the pool that files share, so an unresponsive name server would block the
 * whole process.
 * @throws ProbeTargetError when the name has no address; the signal's reason
 */
export async function probeAddress(host: string, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const name = host.toLowerCase();
  if (/(?:^|\.)localhost\.?$/u.test(name)) return "127.0.0.1";
  const { addresses, code } = await addressesOfName(name, signal);
  const [first] = addresses;
  if (first !== undefined) return first;
  throw new ProbeTargetError(`no address of ${name} was found${code}`);
}

/**
 * The addresses of a name: from /etc/hosts, else from DNS with the machine's search domains, IPv4 before IPv6. If there
 * are none, the reason for people.
 * @throws the signal's reason
 */
export async function addressesOfName(
  name: string,
  signal: AbortSignal,
): Promise<{ readonly addresses: readonly string[]; readonly code: string }> {
  const written = await hostsFileAddresses(name.replace(/\.$/u, ""));
  if (written.length > 0) return { addresses: written, code: "" };
  const rules = parseSearchRules((await textOf("/etc/resolv.conf")).slice(0, maxConfigBytes));
  let code = "";
  for (const full of searchNames(name, rules)) {
    signal.throwIfAborted();
    const found = await ask(full, signal);
    if (found.addresses.length > 0) return found;
    ({ code } = found);
  }
  return { addresses: [], code };
}

async function ask(
  name: string,
  signal: AbortSignal,
): Promise<{ readonly addresses: readonly string[]; readonly code: string }> {
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: lookupTries });
  using _abort = onAbort(signal, () => resolver.cancel());
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.throwIfAborted();
  const addresses = [four, six].flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const reason: unknown = four.status === "rejected" ? four.reason : undefined;
  return { addresses, code: reason instanceof Error && "code" in reason ? ` (${String(reason.code)})` : "" };
}

async function hostsFileAddresses(name: string): Promise<string[]> {
  const text = await textOf("/etc/hosts");
  return text
    .slice(0, maxConfigBytes)
    .split("\n")
    .flatMap((line) => {
      const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
      // The name first: compiling Node.js' pattern for IPv6 addresses takes 20 ms.
      return names.some((other) => other.toLowerCase() === name) && isIP(address) !== 0 ? [address] : [];
    });
}

/** Empty if it cannot be read. */
async function textOf(path: string): Promise<string> {
  return await readFile(path, "utf8").catch(() => "");
}
