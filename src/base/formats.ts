/**
 * The syntaxes of names that the API server holds (apimachinery/pkg/util/validation). Each check gives what is wrong,
 * or undefined.
 */

const label = "lower-case letters, digits and '-', with a letter or digit at both ends";

/** RFC 1123 label: names of containers, volumes and namespaces, hostnames. */
export function dnsLabelProblem(text: string): string | undefined {
  if (text.length > 63) return "must be no more than 63 characters";
  return /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/u.test(text) ? undefined : `must consist of ${label}`;
}

/** RFC 1123 subdomain: names of pods, nodes, ConfigMaps and Secrets. */
export function dnsSubdomainProblem(text: string): string | undefined {
  if (text.length > 253) return "must be no more than 253 characters";
  const parts = text.split(".");
  const good = parts.every((part) => /^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/u.test(part));
  return good ? undefined : `must consist of ${label}, or several of such joined by '.'`;
}

/** The name of a CSI driver, which also names directories: a subdomain of at most 63 characters, in any case. */
export function driverNameProblem(text: string): string | undefined {
  return text.length > 63 ? "must be no more than 63 characters" : dnsSubdomainProblem(text.toLowerCase());
}

/** A search path of DNS: a subdomain whose parts may hold `_`, also one before them (KEP-4427). */
export function dnsSearchProblem(text: string): string | undefined {
  if (text.length > 253) return "must be no more than 253 characters";
  const good = text.split(".").every((part) => /^_?[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/u.test(part));
  return good ? undefined : "must consist of lower-case letters, digits, '-' and '_', or several of such joined by '.'";
}

/** `[prefix/]name`: keys of labels and annotations, names of resources. */
export function qualifiedNameProblem(text: string): string | undefined {
  const parts = text.split("/");
  const name = parts.pop() ?? "";
  const prefix = parts[0];
  if (parts.length > 1) return "must be a name with an optional prefix and one '/' (e.g. 'example.com/MyName')";
  if (prefix !== undefined) {
    const problem = prefix === "" ? "must be non-empty" : dnsSubdomainProblem(prefix);
    if (problem !== undefined) return `prefix part ${problem}`;
  }
  if (name === "") return "name part must be non-empty";
  if (name.length > 63) return "name part must be no more than 63 characters";
  if (/^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/u.test(name)) return undefined;
  return "name part must consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends";
}

export function labelValueProblem(text: string): string | undefined {
  if (text.length > 63) return "must be no more than 63 characters";
  if (text === "" || /^[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?$/u.test(text)) return undefined;
  return "must be empty or consist of letters, digits, '-', '_' and '.', with a letter or digit at both ends";
}

/** IANA_SVC_NAME (RFC 6335 §5.1): names of ports. */
export function portNameProblem(text: string): string | undefined {
  if (text.length > 15) return "must be no more than 15 characters";
  if (!/^[-a-z0-9]+$/u.test(text)) return "must contain only lower-case letters, digits and '-'";
  if (!/[a-z]/u.test(text)) return "must contain at least one letter";
  if (text.includes("--")) return "must not contain two '-' in a row";
  return text.startsWith("-") || text.endsWith("-") ? "must not begin or end with '-'" : undefined;
}

/** Names of environment variables (KEP-4369): printable ASCII without `=`. */
export function environmentNameProblem(text: string): string | undefined {
  if (text === "") return "must be non-empty";
  return /^[ -<>-~]+$/u.test(text) ? undefined : "must consist of printable ASCII characters other than '='";
}

/** Keys of ConfigMaps and Secrets. */
export function configKeyProblem(text: string): string | undefined {
  if (text.length > 253) return "must be no more than 253 characters";
  if (!/^[-._A-Za-z0-9]+$/u.test(text)) return "must consist of letters, digits, '-', '_' and '.'";
  return text === "." || text.startsWith("..") ? "must not be '.' or start with '..'" : undefined;
}

/** A pod's UID also names directories and cgroups. */
export function podUidProblem(text: string): string | undefined {
  if (text.length > 63) return "must be no more than 63 characters";
  return /^[A-Za-z0-9](?:[-A-Za-z0-9]*[A-Za-z0-9])?$/u.test(text)
    ? undefined
    : "must consist of letters, digits and '-', with a letter or digit at both ends";
}

/** An address for a file that other programs read: an IPv4 address in IPv6 form is rejected (KEP-4858). */
export function ipAddressProblem(text: string): string | undefined {
  if (!isIpAddress(text)) return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  const mapped =
    /^(?:0*:){1,5}(?:0*:)*ffff:[^:]+(?::[^:]+)?$/iu.test(text) && isIpv4(text.slice(text.lastIndexOf(":") + 1));
  return mapped ? "must not be an IPv4-mapped IPv6 address" : undefined;
}

/** An IPv4 or IPv6 address without a zone. */
export function isIpAddress(text: string): boolean {
  return isIpv4(text) || isIpv6(text);
}

function isIpv4(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 4 && parts.every((part) => /^(?:0|[1-9]\d{0,2})$/u.test(part) && Number(part) <= 255);
}

function isIpv6(text: string): boolean {
  const halves = text.split("::");
  if (halves.length > 2) return false;
  const groups = halves.flatMap((half) => (half === "" ? [] : half.split(":")));
  const last = groups.at(-1);
  const embedded = last?.includes(".") === true;
  if (embedded && !isIpv4(last)) return false;
  const hex = embedded ? groups.slice(0, -1) : groups;
  if (!hex.every((group) => /^[0-9A-Fa-f]{1,4}$/u.test(group))) return false;
  const count = hex.length + (embedded ? 2 : 0);
  return halves.length === 2 ? count <= 7 : count === 8;
}

/** A relative path that stays below where it starts. */
export function localPathProblem(text: string): string | undefined {
  if (text.startsWith("/")) return "must be a relative path";
  return text.split("/").includes("..") ? "must not contain '..'" : undefined;
}
