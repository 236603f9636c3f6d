"""Which design serves best for the money: settings that experiments declare are searched."""
