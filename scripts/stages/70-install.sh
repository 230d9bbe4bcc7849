# Installation: headers, libraries, pkg-config file, the program
counted "install and use" "$root/scripts/lib/install_test.sh" build/gcc
