import { Resolver } from "node:dns/promises";
import { readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { onAbort } from "../base/abort.ts";
import { ProbeTargetError } from "../ports/network-probes.ts";

const lookupTimeoutMs = 1000;
const lookupTries = 2;
const maxHostsBytes = 1 << 20;

/**
 * The address of a probe's host: itself when it is one, then /etc/hosts, then DNS, IPv4 before IPv6.
 *
 * getaddrinfo is not used: it takes a thread of the pool that files share, so that a name server that does not answer
 * would hold up the whole process. Names are therefore looked up as they are written, without search domains.
 * @throws ProbeTargetError when the name has no address; the signal's reason
 */
export async function probeAddress(host: string, signal: AbortSignal): Promise<string> {
  if (isIP(host) !== 0) return host;
  const name = host.toLowerCase().replace(/\.$/, "");
  if (name === "localhost" || name.endsWith(".localhost")) return "127.0.0.1";
  const written = await hostsFileAddress(name);
  if (written !== undefined) return written;
  signal.throwIfAborted();
  const resolver = new Resolver({ timeout: lookupTimeoutMs, tries: lookupTries });
  using _abort = onAbort(signal, () => resolver.cancel());
  const [four, six] = await Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
  signal.throwIfAborted();
  const addresses = [four, six].flatMap((result) => (result.status === "fulfilled" ? result.value : []));
  const [first] = addresses;
  if (first !== undefined) return first;
  const reason: unknown = four.status === "rejected" ? four.reason : undefined;
  const code = reason instanceof Error && "code" in reason ? ` (${String(reason.code)})` : "";
  throw new ProbeTargetError(`no address of ${name} was found${code}`);
}

async function hostsFileAddress(name: string): Promise<string | undefined> {
  const text = await readFile("/etc/hosts", "utf8").catch(() => "");
  for (const line of text.slice(0, maxHostsBytes).split("\n")) {
    const [address = "", ...names] = (line.split("#", 1)[0] ?? "").trim().split(/\s+/);
    if (isIP(address) !== 0 && names.some((other) => other.toLowerCase() === name)) return address;
  }
  return undefined;
}
