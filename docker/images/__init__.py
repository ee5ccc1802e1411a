"""What the images of the Docker back-end are built from, beside the code wherever that is installed."""
