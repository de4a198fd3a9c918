"""Write the generated pages of the documentation."""

from pipeline_tasks.cli.reference import main

if __name__ == "__main__":
    main()
