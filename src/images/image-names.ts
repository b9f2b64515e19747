import { type ImageReference, ImageReferenceError, parseImageReference } from "./image-reference.ts";

/**
 * Whether an image of the runtime may be the one that a pod's spec names; pure. The runtime completes a name without a
 * registry by its own rules (registries.conf), so that matches the same name in any registry.
 * @param names the runtime's tags and digests
 */
export function isNamed(wanted: string, image: { readonly id: string; readonly names: readonly string[] }): boolean {
  if (wanted === "") return false;
  if (image.id === wanted || image.names.includes(wanted)) return true;
  const reference = parsed(wanted);
  if (reference === undefined) return false;
  const isShort = !hasRegistry(wanted);
  return image.names.some((name) => {
    const own = parsed(name);
    if (own === undefined || !isSameVersion(reference, own)) return false;
    if (own.domain === reference.domain && own.path === reference.path) return true;
    return isShort && `/${own.path}`.endsWith(`/${wanted.split(/[:@]/u, 1)[0]}`);
  });
}

function isSameVersion(wanted: ImageReference, own: ImageReference): boolean {
  return wanted.digest === "" ? own.digest === "" && own.tag === wanted.tag : own.digest === wanted.digest;
}

function hasRegistry(name: string): boolean {
  const slash = name.indexOf("/");
  return slash > 0 && (/[.:]/u.test(name.slice(0, slash)) || name.startsWith("localhost/"));
}

function parsed(name: string): ImageReference | undefined {
  try {
    return parseImageReference(name);
  } catch (error) {
    if (error instanceof ImageReferenceError) return undefined;
    throw error;
  }
}
