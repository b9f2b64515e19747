import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { onAbort } from "../../base/abort.ts";
import { ProbeTargetError } from "../../ports/network-probes.ts";

const lookupTimeoutMs = 1000;
const lookupTries = 2;
const maxHostsBytes = 1 << 20;

/**
 * Resolves a probe's host: an address as it is, then /etc/hosts, then DNS, IPv4 before IPv6.
 *
 * Not getaddrinfo: it occupies a thread of the pool that files share, so an unresponsive name server would block the
 * whole process. Therefore search domains are not applied.
 * @throws ProbeTargetError when the name has no address; the signal's reason
 */
export async function probeAddress(host: string, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return "127.0.0.1";
  const { addresses, code } = await addressesOfName(name, signal);
  const [first] = addresses;
  if (first !== undefined) return first;
  throw new ProbeTargetError(`no address of ${name} was found${code}`);
}

/**
 * The addresses of a name: from /etc/hosts, else from DNS, IPv4 before IPv6. If there are none, the reason for people.
 * @throws the signal's reason
 */
export async function addressesOfName(
  name: string,
  signal: AbortSignal,
): Promise<{ readonly addresses: readonly string[]; readonly code: string }> {
  const written = await hostsFileAddresses(name);
  if (written.length > 0) return { addresses: written, code: "" };
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: lookupTries });
  using _abort = onAbort(signal, () => resolver.cancel());
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.throwIfAborted();
  const addresses = [four, six].flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const reason: unknown = four.status === "rejected" ? four.reason : undefined;
  return { addresses, code: reason instanceof Error && "code" in reason ? ` (${String(reason.code)})` : "" };
}

async function hostsFileAddresses(name: string): Promise<string[]> {
  const text = await readFile("/etc/hosts", "utf8").catch(() => "");
  return text
    .slice(0, maxHostsBytes)
    .split("\n")
    .flatMap((line) => {
      const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
      // The name first: compiling Node.js' pattern for IPv6 addresses takes 20 ms.
      return names.some((other) => other.toLowerCase() === name) && isIP(address) !== 0 ? [address] : [];
    });
}
