"""The network between members and brokers: proxies, packet rules, redirects and network namespaces."""
