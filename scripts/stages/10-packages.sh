# Debian packages
check "packages" install_packages build test
