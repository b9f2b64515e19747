/** A parsed image name, completed as Docker does: `busybox` is `docker.io/library/busybox`, tag `latest`. */
export interface ImageReference {
  /** Registry host, with its port when one is given. */
  readonly domain: string;
  /** Repository below the domain. */
  readonly path: string;
  /** `latest` when the name has neither tag nor digest; empty when it has only a digest. */
  readonly tag: string;
  /** `sha256:…`, or empty. */
  readonly digest: string;
}

/** An invalid image reference; the message is upstream's, which users search for. */
export class ImageReferenceError extends Error {
  constructor(image: string, problem: string) {
    super(`couldn't parse image name ${JSON.stringify(image)}: ${problem}`);
    this.name = "ImageReferenceError";
  }
}

const defaultDomain = "docker.io";
const maxPathCharacters = 255;
/** Longer than any host, path, tag and digest together; bounds the cost of a hostile name. */
const maxCharacters = 4096;

const domainComponent = "[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?";
const domain = `(?:${domainComponent}(?:\\.${domainComponent})*|\\[[a-fA-F0-9:]+\\])(?::[0-9]+)?`;
const pathComponent = "[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*";
const path = `${pathComponent}(?:/${pathComponent})*`;
const tag = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}";
const digest = "[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}";
/** The grammar of github.com/distribution/reference, for names that already begin with their domain. */
const reference = new RegExp(`^(?<domain>${domain})/(?<path>${path})(?::(?<tag>${tag}))?(?:@(?<digest>${digest}))?$`);
const identifier = /^[a-f0-9]{64}$/;
const digestLengths: Readonly<Record<string, number>> = { sha256: 64, sha384: 96, sha512: 128 };

/**
 * Parses an image name as upstream does (github.com/distribution/reference, ParseNormalizedNamed).
 * @throws ImageReferenceError
 */
export function parseImageReference(image: string): ImageReference {
  if (identifier.test(image)) {
    throw new ImageReferenceError(
      image,
      `invalid repository name (${image}), cannot specify 64-byte hexadecimal strings`,
    );
  }
  if (image.length > maxCharacters) {
    throw new ImageReferenceError(`${image.slice(0, 100)}…`, "invalid reference format");
  }
  const [host, remainder] = splitDomain(image);
  const [name = ""] = remainder.split(":", 1);
  if (name !== name.toLowerCase()) {
    throw new ImageReferenceError(image, `invalid reference format: repository name (${name}) must be lowercase`);
  }
  const parts = reference.exec(`${host}/${remainder}`)?.groups;
  if (parts === undefined) throw new ImageReferenceError(image, "invalid reference format");
  const { domain: parsedDomain = "", path: parsedPath = "", tag: parsedTag = "", digest: parsedDigest = "" } = parts;
  if (parsedPath.length > maxPathCharacters) {
    throw new ImageReferenceError(image, `repository name must not be more than ${maxPathCharacters} characters`);
  }
  const problem = parsedDigest === "" ? undefined : digestProblem(parsedDigest);
  if (problem !== undefined) throw new ImageReferenceError(image, problem);
  const completedTag = parsedTag === "" && parsedDigest === "" ? "latest" : parsedTag;
  return { domain: parsedDomain, path: parsedPath, tag: completedTag, digest: parsedDigest };
}

/**
 * The image name sent to the runtime: with `:latest` when it has neither tag nor digest, otherwise as written, because
 * the runtime resolves short names by its own configuration (registries.conf).
 * @throws ImageReferenceError
 */
export function withDefaultTag(image: string): string {
  const { tag: parsedTag, digest: parsedDigest } = parseImageReference(image);
  const suffix = `:${parsedTag}`;
  return parsedDigest === "" && !image.endsWith(suffix) ? `${image}${suffix}` : image;
}

function splitDomain(image: string): readonly [string, string] {
  const slash = image.indexOf("/");
  if (slash < 0) return [defaultDomain, `library/${image}`];
  const first = image.slice(0, slash);
  const rest = image.slice(slash + 1);
  if (first === defaultDomain || first === "index.docker.io") {
    return [defaultDomain, rest.includes("/") ? rest : `library/${rest}`];
  }
  // A first component without dot or colon is a Docker Hub user, not a host, unless it is no valid user name.
  const isHost = first === "localhost" || /[.:]/.test(first) || first !== first.toLowerCase();
  return isHost ? [first, rest] : [defaultDomain, image];
}

function digestProblem(text: string): string | undefined {
  const [algorithm = "", encoded = ""] = text.split(":");
  const length = digestLengths[algorithm];
  if (length === undefined) return "unsupported digest algorithm";
  if (encoded.length !== length) return "invalid checksum digest length";
  return /^[a-f0-9]+$/.test(encoded) ? undefined : "invalid checksum digest format";
}
