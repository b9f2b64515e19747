/** The release of Kubernetes whose kubelet podwright stands in for; what podwright is comes behind it. */
export const kubernetesVersion = "v1.36.2";
